"""What the submitter does with a Ray that is slow, breaks, forgets or refuses. Run by submit.test.ts."""

import http.server
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

import submit

submit.ASK_EVERY = 0.01
submit.PAUSE = 0.01
submit.LAST_READ = 0.2
submit.say = lambda text: None

SESSION = "session-1"
PROGRAM = (pathlib.Path(__file__).parent / "submit.py").read_text()


class FakeRay:
    """Dashboard and SDK client in one. `answers`: what the questions about the job are answered with, last one for ever."""

    address = "http://ray"

    def __init__(self, answers, streams=((),), session=SESSION, on_submit=None):
        self.answers = list(answers)
        self.streams = list(streams)
        self.session_name = session
        self.on_submit = on_submit
        self.submitted = []
        self.connections = 0

    def status(self, job_id):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def session(self):
        return self.session_name

    def connect(self, address):
        return self

    def submit_job(self, **request):
        self.submitted.append(request)
        if self.on_submit:
            raise self.on_submit.pop(0)

    async def tail_job_logs(self, job_id):
        self.connections += 1
        for text in self.streams.pop(0) if len(self.streams) > 1 else self.streams[0]:
            if isinstance(text, Exception):
                raise text
            if text is None:  # hangs
                await submit.asyncio.sleep(3600)
            yield text


def run(ray, session=SESSION, **options):
    out = io.StringIO()
    request = {"entrypoint": "echo", "submission_id": "job-1"}
    options.setdefault("sleep", lambda seconds: None)
    code = submit.Submitter(request, session, ray, ray.connect, out, **options).run()
    return code, out.getvalue()


class HandingOver(unittest.TestCase):
    def test_a_job_that_ray_does_not_know_is_submitted_once_and_followed(self):
        ray = FakeRay([None, "RUNNING", "SUCCEEDED"], [["one\n", "two\n"]])
        self.assertEqual(run(ray), (0, "one\ntwo\n"))
        self.assertEqual(ray.submitted, [{"entrypoint": "echo", "submission_id": "job-1"}])

    def test_a_job_that_ray_knows_is_followed_only(self):
        for status in ("PENDING", "RUNNING", "FAILED"):
            ray = FakeRay([status, "FAILED"], [["log\n"]])
            self.assertEqual(run(ray), (0, "log\n"))
            self.assertEqual(ray.submitted, [])

    def test_nothing_is_submitted_into_another_session(self):
        ray = FakeRay([None], session="session-2")
        self.assertEqual(run(ray)[0], 3)
        self.assertEqual(ray.submitted, [])

    def test_a_submission_without_answer_is_asked_about_before_it_is_repeated(self):
        ray = FakeRay([None, "RUNNING", "SUCCEEDED"], on_submit=[RuntimeError("Request failed with status code 500: …")])
        self.assertEqual(run(ray)[0], 0)
        self.assertEqual(len(ray.submitted), 1)

    def test_a_job_that_ray_does_not_take_is_not_tried_again(self):
        for refusal in (RuntimeError("Request failed with status code 400: bad"), ValueError("no such directory")):
            ray = FakeRay([None], on_submit=[refusal])
            self.assertEqual(run(ray)[0], 1)
            self.assertEqual(len(ray.submitted), 1)

    def test_a_dashboard_that_is_not_there_yet_is_waited_for(self):
        silence = submit.NoAnswer("refused")
        ray = FakeRay([silence, silence, None, "SUCCEEDED"])
        self.assertEqual(run(ray)[0], 0)
        self.assertEqual(len(ray.submitted), 1)

    def test_but_not_for_ever(self):
        now = [0]

        def sleep(seconds):
            now[0] += 60

        ray = FakeRay([submit.NoAnswer("refused")])
        self.assertEqual(run(ray, clock=lambda: now[0], sleep=sleep)[0], 1)
        self.assertEqual(ray.submitted, [])


class Following(unittest.TestCase):
    def test_a_stream_that_breaks_is_taken_up_where_it_broke(self):
        broken = RuntimeError("connection lost")
        ray = FakeRay(
            ["RUNNING", "RUNNING", "RUNNING", "SUCCEEDED"],
            [["one\n", "tw", broken], ["one\ntwo\nth", broken], ["one\n", "two\n", "three\n"]],
        )
        self.assertEqual(run(ray), (0, "one\ntwo\nthree\n"))

    def test_a_stream_that_ends_in_the_middle_of_the_job_is_opened_again(self):
        ray = FakeRay(["RUNNING", "RUNNING", "RUNNING", "SUCCEEDED"], [["one\n"], ["one\n", "two\n"]])
        self.assertEqual(run(ray), (0, "one\ntwo\n"))

    def test_a_stream_that_hangs_does_not_keep_it(self):
        ray = FakeRay(["RUNNING", "RUNNING", "SUCCEEDED"], [["one\n", None], ["one\n", "two\n"]])
        self.assertEqual(run(ray), (0, "one\ntwo\n"))

    def test_a_log_that_never_ends_does_not_keep_it_either(self):
        self.assertEqual(run(FakeRay(["SUCCEEDED"], [["one\n", None]])), (0, "one\n"))

    def test_a_failed_job_is_no_failure_of_the_submitter(self):
        for status in ("FAILED", "STOPPED"):
            self.assertEqual(run(FakeRay(["RUNNING", status]))[0], 0)

    def test_a_job_that_ray_has_lost_is_not_submitted_again(self):
        ray = FakeRay(["RUNNING", "RUNNING", None], [[None]])
        self.assertEqual(run(ray)[0], 0)
        self.assertEqual(ray.submitted, [])


class Dashboard(http.server.BaseHTTPRequestHandler):
    replies = {}
    shown = []

    def do_GET(self):
        self.shown.append(self.headers.get("authorization"))
        code, body = self.replies[self.path]
        self.send_response(code)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Asking(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dashboard)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.ray = submit.Ray("http://127.0.0.1:%d" % self.server.server_port)

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def test_404_means_unknown_and_2xx_is_an_answer(self):
        Dashboard.replies = {
            "/api/jobs/a": (404, b"Job a does not exist"),
            "/api/jobs/b": (200, b'{"status": "RUNNING"}'),
            "/api/version": (200, b'{"session_name": "s"}'),
        }
        self.assertIsNone(self.ray.status("a"))
        self.assertEqual(self.ray.status("b"), "RUNNING")
        self.assertEqual(self.ray.session(), "s")

    def test_everything_else_is_no_answer_whatever_its_body(self):
        for reply in ((500, b'{"status": "FAILED"}'), (401, b"{}"), (503, b""), (200, b"<html>"), (200, b"{}"), (200, b"[]")):
            Dashboard.replies = {"/api/jobs/a": reply}
            with self.assertRaises(submit.NoAnswer):
                self.ray.status("a")

    def test_a_token_is_shown_with_every_question(self):
        Dashboard.replies = {"/api/jobs/a": (200, b'{"status": "RUNNING"}'), "/api/version": (200, b'{"session_name": "s"}')}
        Dashboard.shown = []
        self.ray.status("a")
        ray = submit.Ray(self.ray.address, "sesame")
        ray.status("a")
        ray.session()
        self.assertEqual(Dashboard.shown, [None, "Bearer sesame", "Bearer sesame"])

    def test_a_refusal_says_what_is_wrong_with_the_token_and_not_the_token(self):
        for code, token, words in (
            (401, "", "Ray wants a token and RAY_AUTH_TOKEN is not set"),
            (403, "sesame", "Ray does not take the token in RAY_AUTH_TOKEN"),
        ):
            Dashboard.replies = {"/api/jobs/a": (code, b"no")}
            with self.assertRaises(submit.NoAnswer) as refused:
                submit.Ray(self.ray.address, token).status("a")
            self.assertIn(words, str(refused.exception))
            self.assertNotIn("sesame", str(refused.exception))

    def test_nobody_there_is_no_answer(self):
        with self.assertRaises(submit.NoAnswer):
            submit.Ray("http://127.0.0.1:1").status("a")


class Program(unittest.TestCase):
    def test_a_request_in_pieces_is_put_together(self):
        text = json.dumps({"entrypoint": "é;`$(x)`\n\\", "submission_id": "j", "session": SESSION})
        environ = {"RAY_DASHBOARD_ADDRESS": "h:1", "RAYKEEPER_SUBMIT": text[:20], "RAYKEEPER_SUBMIT_1": text[20:40]}
        environ["RAYKEEPER_SUBMIT_2"] = text[40:]
        expected = ("http://h:1", {"entrypoint": "é;`$(x)`\n\\", "submission_id": "j"}, SESSION)
        self.assertEqual(submit.read_environment(environ), expected)

    def test_sigterm_ends_it_at_once(self):
        environ = dict(os.environ, RAY_DASHBOARD_ADDRESS="127.0.0.1:1", RAYKEEPER_SUBMIT='{"entrypoint": "x", "submission_id": "j"}')
        process = subprocess.Popen([sys.executable, "-u", "-c", PROGRAM], env=environ, stderr=subprocess.PIPE)
        self.assertIn(b"waiting for Ray", process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10), 143)
        process.stderr.close()


if __name__ == "__main__":
    unittest.main()
