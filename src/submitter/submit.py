"""Hands a Ray job to its cluster, once, and follows its log until Ray says that it has ended.

Everything comes as data, in environment variables:
  RAY_DASHBOARD_ADDRESS   host:port of the dashboard
  RAY_AUTH_TOKEN          the token that Ray wants, if it wants one; Ray's SDK reads it itself
  RAYKEEPER_SUBMIT        JSON: Ray's own submission request, and the session it is meant for;
                          longer ones go on in RAYKEEPER_SUBMIT_1, _2, ...

Exit code 0, whatever the job's result: the verdict on the job is Ray's, and the operator asks Ray.
1: could not do its own work (no answer, not accepted). 3: Ray runs in another session, so nothing was submitted.

Started again, it never submits a job that Ray knows, nor into another session than the one it was made for. It runs
with the image's Python (3.9 or newer) and Ray, and needs nothing else.
"""

import asyncio
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

# Seconds.
PATIENCE = 600  # without any answer from Ray, before giving up
PAUSE = 2  # between two tries
SAY_EVERY = 20  # that it still waits
ASK_EVERY = 3  # while following
HTTP_TIMEOUT = 15
SUBMIT_TIMEOUT = 120  # Ray answers when the job is in its table; an upload counts each piece
LAST_READ = 30  # for what the log still holds when the job has ended
TERMINAL = ("STOPPED", "SUCCEEDED", "FAILED")

OK, FAILED, OTHER_SESSION = 0, 1, 3


def say(text):
    print("raykeeper: " + text, file=sys.stderr, flush=True)


class NoAnswer(Exception):
    """Ray did not answer, or not in a way that tells anything."""


class Refused(Exception):
    """Ray, or its SDK, does not take the job, and will not take it later either."""


class Ray:
    """What is asked of the dashboard beside the SDK: plain requests that always end."""

    def __init__(self, address, token=""):
        self.address = address
        self.headers = {"Authorization": "Bearer " + token} if token else {}

    def _get(self, path):
        """(status, parsed body); 404 is an answer, everything else but 2xx is none."""
        asked = urllib.request.Request(self.address + path, headers=self.headers)
        try:
            with urllib.request.urlopen(asked, timeout=HTTP_TIMEOUT) as answer:
                return answer.status, json.loads(answer.read().decode("utf-8"))
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    return 404, None
            raise NoAnswer("GET %s: HTTP %d%s" % (path, error.code, self._why(error.code)))
        except (OSError, ValueError) as error:
            raise NoAnswer("GET %s: %s" % (path, error))

    def _why(self, code):
        """What is behind a refusal, as far as can be told from here."""
        if code == 401 and not self.headers:
            return ", Ray wants a token and RAY_AUTH_TOKEN is not set"
        return ", Ray does not take the token in RAY_AUTH_TOKEN" if code in (401, 403) and self.headers else ""

    def status(self, job_id):
        """Ray's status of the job; None when Ray does not know it."""
        code, job = self._get("/api/jobs/" + urllib.parse.quote(job_id, safe=""))
        if code == 404:
            return None
        if not isinstance(job, dict) or not job.get("status"):
            raise NoAnswer("the answer about the job has no status")
        return job["status"]

    def session(self):
        """The name of Ray's session: new with each start of a head. None where this Ray does not tell it."""
        code, version = self._get("/api/version")
        if code == 404 or not isinstance(version, dict):
            raise NoAnswer("GET /api/version: no answer that tells a session")
        return version.get("session_name")


def connect(address):
    """The SDK's client. It asks Ray for its version at once, so a dashboard that is not there makes it raise."""
    import requests
    from ray.job_submission import JobSubmissionClient

    # The SDK sets no time-out anywhere; a dashboard that hangs would hold us for ever.
    plain = requests.Session.request
    if not getattr(plain, "bounded", False):

        def bounded(self, *args, **kwargs):
            if kwargs.get("timeout") is None:
                kwargs["timeout"] = (HTTP_TIMEOUT, SUBMIT_TIMEOUT)
            return plain(self, *args, **kwargs)

        bounded.bounded = True
        requests.Session.request = bounded
    return JobSubmissionClient(address)


class Submitter:
    def __init__(self, request, session, ray, connect, out=None, clock=time.monotonic, sleep=time.sleep):
        self.request = request
        self.job_id = request["submission_id"]
        self.meant_for = session
        self.ray = ray
        self.connect = connect
        self.out = out or sys.stdout
        self.clock = clock
        self.sleep = sleep
        self.client = None
        self.printed = 0  # characters of the job's log, which is replayed from its start on each connection

    def run(self):
        code = self.hand_over()
        return code if code is not None else asyncio.run(self.follow())

    # Handing over.

    def hand_over(self):
        """Returns when Ray has the job, or an exit code."""
        silent_since = self.clock()
        said_at = None
        while True:
            try:
                # The job first, then the session: so "unknown" and this session belong together.
                status = self.ray.status(self.job_id)
                session = self.ray.session()
                if self.meant_for and session and session != self.meant_for:
                    say("Ray runs in session %s, not in %s, which the job was meant for: not submitting" % (session, self.meant_for))
                    return OTHER_SESSION
                if status is not None:
                    say("Ray has job %s (%s)" % (self.job_id, status))
                    return None
                self.submit()
                say("submitted job %s" % self.job_id)
                return None
            except Refused as error:
                say("Ray does not take job %s: %s" % (self.job_id, error))
                return FAILED
            except NoAnswer as error:
                if self.clock() - silent_since > PATIENCE:
                    say("giving up after %d s: %s" % (PATIENCE, error))
                    return FAILED
                if said_at is None or self.clock() - said_at >= SAY_EVERY:
                    say(("waiting for Ray at %s (%s)" if said_at is None else "still waiting for Ray at %s (%s)") % (self.ray.address, error))
                    said_at = self.clock()
                self.sleep(PAUSE)

    def submit(self):
        """Raises NoAnswer where Ray may or may not have the job: the caller asks before it tries again."""
        try:
            self.client = self.client or self.connect(self.ray.address)
        except Exception as error:
            # Its constructor asks Ray; any trouble there may pass.
            if isinstance(error, ImportError):
                raise Refused("the image has no Ray job SDK (%s); use an image with ray[default]" % error)
            raise NoAnswer("connecting: %s" % error)
        try:
            self.client.submit_job(**self.request)
        except (ValueError, TypeError) as error:
            # The SDK's own look at the runtime environment: paths that are not there, fields of a wrong type.
            raise Refused(error)
        except Exception as error:
            # The HTTP status is only in the text. 4xx: Ray has understood, and will say the same again.
            if "status code 4" in str(error):
                raise Refused(error)
            raise NoAnswer("submitting: %s" % error)

    # Following.

    async def follow(self):
        """Prints the job's log until Ray says that it has ended; reconnects when the stream breaks."""
        answered_at = self.clock()
        while True:
            stream = asyncio.ensure_future(self.read_log())
            status = None
            while True:
                done, _ = await asyncio.wait([stream], timeout=ASK_EVERY)
                try:
                    status = await asyncio.get_running_loop().run_in_executor(None, self.ray.status, self.job_id)
                    answered_at = self.clock()
                except NoAnswer as error:
                    if self.clock() - answered_at > PATIENCE:
                        say("giving up after %d s: %s" % (PATIENCE, error))
                        stream.cancel()
                        return FAILED
                else:
                    if status is None:
                        # Not submitted again, by nobody: the operator judges what became of it.
                        say("Ray does not know job %s any more" % self.job_id)
                        stream.cancel()
                        return OK
                if done or status in TERMINAL:
                    break
            if status in TERMINAL:
                await self.finish(stream)
                say("job %s ended: %s" % (self.job_id, status))
                return OK
            await asyncio.sleep(PAUSE)

    async def finish(self, stream):
        """What the log still holds; the stream ends by itself now, but is not trusted to."""
        ended_before = stream.done()
        if not ended_before:
            await asyncio.wait([stream], timeout=LAST_READ)
        if ended_before or not stream.done():
            # It broke, or hangs, and perhaps not at the log's end.
            stream.cancel()
            try:
                await asyncio.wait_for(self.read_log(), LAST_READ)
            except asyncio.TimeoutError:
                say("the rest of the log did not come within %d s" % LAST_READ)

    async def read_log(self):
        """One connection to the log, from its first character; what was printed before is skipped."""
        try:
            self.client = self.client or await asyncio.get_running_loop().run_in_executor(None, self.connect, self.ray.address)
            seen = 0
            async for text in self.client.tail_job_logs(self.job_id):
                new = text[max(0, self.printed - seen) :]
                seen += len(text)
                if new:
                    self.printed = seen
                    self.out.write(new)
                    self.out.flush()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            say("the log's stream broke: %s" % error)


def read_environment(environ):
    """(address, request, session) as the operator gave them."""
    text = environ["RAYKEEPER_SUBMIT"]
    part = 1
    while "RAYKEEPER_SUBMIT_%d" % part in environ:
        text += environ["RAYKEEPER_SUBMIT_%d" % part]
        part += 1
    request = json.loads(text)
    session = request.pop("session", None)
    return "http://" + environ["RAY_DASHBOARD_ADDRESS"], request, session


def main():
    # As PID 1 a process ignores SIGTERM unless it has a handler.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    # The job's log goes through as it is, in whatever locale the image has.
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    sys.stderr.reconfigure(encoding="utf-8", errors="replace")
    address, request, session = read_environment(os.environ)
    # Either would override the address that the SDK is given.
    for name in ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"):
        os.environ.pop(name, None)
    # Ray's SDK cuts it in the same way.
    token = os.environ.get("RAY_AUTH_TOKEN", "").strip()
    code = Submitter(request, session, Ray(address, token), connect).run()
    sys.stdout.flush()
    # Threads of a request that hangs would keep the process.
    os._exit(code)


if __name__ == "__main__":
    main()
