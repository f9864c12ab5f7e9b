"""What runc is to a kubelet: makes a Pod's network, and runs one container in it as a process.

    runtime.py network   makes a network namespace, joined to the node's bridge, and keeps it as a file
    runtime.py run       runs a container and stays as its parent until it has ended

Each reads its orders as JSON from standard input. `run` reports on file descriptor 3, a JSON object a line:
{"pid": n} once the program runs, {"error": text} when it could not be started, {"exit": code} at the end.

May not: change anything outside the namespaces it makes. A container sees the machine's own files, read-only and
without anybody's home; what it may write is its alone and goes with it.
Needs nothing but the standard library of Python 3.9. Next: runtime.ts gives the orders.
"""

import ctypes
import errno
import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = (
    0x00020000, 0x04000000, 0x08000000, 0x20000000, 0x40000000)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
OPTION_FLAGS = {"nosuid": MS_NOSUID, "nodev": MS_NODEV, "noexec": MS_NOEXEC,
                "noatime": 1024, "nodiratime": 2048, "relatime": 1 << 21}
MS_STRICTATIME = 1 << 24
# A mount below something hidden, below a folder that is closed to us (Docker's), or of a file system that is not there
# any more: the container cannot get there either.
OUT_OF_REACH = (errno.ENOENT, errno.EACCES, errno.ENOTCONN, errno.ESTALE)
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_CAPBSET_DROP = 1, 24
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

# The capabilities that container runtimes leave a container by default.
CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}

# Seen empty, except for what the orders mount there: other people's files are none of a container's business.
EMPTY = ("/home", "/root", "/proc")
# Where the new root is put together, in a mount namespace of its own. Orders always mount something on /tmp, so that
# the machine's own is not wanted in it.
ROOT = "/tmp"


def check(result, what):
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, "%s: %s" % (what, os.strerror(code)))


def unshare(flags):
    check(libc.unshare(flags), "unshare")


def mount(source, target, kind=None, flags=0, options=None):
    encode = lambda text: None if text is None else os.fsencode(text)
    check(libc.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(options)),
          "mount %s on %s" % (source or kind, target))


# ---------------------------------------------------------------------------------------------------------- network


def make_network(orders):
    """Orders: file, address, prefix, gateway, bridge, veth. The namespace lives as long as `file` stays mounted."""
    node = os.open("/proc/self/ns/net", os.O_RDONLY)
    unshare(CLONE_NEWNET)
    with open(orders["file"], "w"):
        pass
    mount("/proc/self/ns/net", orders["file"], flags=MS_BIND)
    ip("link set lo up",
       "link add eth0 type veth peer name %(veth)s netns /proc/%(pid)d/fd/%(node)d" % dict(orders, pid=os.getpid(), node=node),
       "address add %(address)s/%(prefix)d dev eth0" % orders,
       "link set eth0 up",
       # Without a default route Ray takes 127.0.0.1 for its address.
       "route add default via %(gateway)s" % orders)
    check(libc.setns(node, CLONE_NEWNET), "setns")
    ip("link set %(veth)s master %(bridge)s up" % orders)


def ip(*commands):
    # By its path, since sbin may be missing from PATH.
    program = next((p for p in ("/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip") if os.path.exists(p)), "ip")
    done = subprocess.run([program, "-batch", "-"], input="\n".join(commands), text=True, close_fds=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise OSError("ip: %s" % done.stdout.strip())


# -------------------------------------------------------------------------------------------------------- container


def run(orders):
    """Orders: network (file), hostname, mounts, hide (folders shown empty), argv, environment, directory, nice."""
    report = os.fdopen(3, "w", buffering=1)
    os.set_inheritable(3, False)

    def tell(**message):
        report.write(json.dumps(message) + "\n")

    with open(orders["network"]) as network:
        check(libc.setns(network.fileno(), CLONE_NEWNET), "setns")
    unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC)
    started, starting = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(started)
        try:
            become(orders)
        except BaseException as error:
            os.write(starting, str(error).encode("utf-8", "replace") or b"failed")
            os._exit(128)
    os.close(starting)
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    failure = os.fdopen(started, "rb").read()
    if failure:
        tell(error=failure.decode("utf-8", "replace"))
    else:
        tell(pid=child)
    status = os.waitpid(child, 0)[1]
    code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    tell(exit=code)


def become(orders):
    """Turns the first process of the new namespaces into the container's program."""
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    os.setsid()
    socket.sethostname(orders["hostname"])
    make_root(orders)
    raise_limits()
    for capability in range(64):
        if capability not in CAPABILITIES and libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    os.nice(orders["nice"])
    os.umask(0o022)
    os.makedirs(orders["directory"], exist_ok=True)
    os.chdir(orders["directory"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    argv = orders["argv"]
    try:
        os.execvpe(argv[0], argv, orders["environment"])
    except FileNotFoundError:
        raise OSError('exec: "%s": executable file not found in $PATH' % argv[0])
    except PermissionError:
        raise OSError('exec: "%s": permission denied' % argv[0])


def raise_limits():
    """As many open files as container runtimes allow, or as many as this machine lets us."""
    for limit in (1 << 20, resource.getrlimit(resource.RLIMIT_NOFILE)[1]):
        try:
            return resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        except (ValueError, OSError):
            continue


def make_root(orders):
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mounts = sorted(({**m, "target": os.path.realpath(m["target"])} for m in orders["mounts"]),
                    key=lambda m: m["target"].count("/"))
    for m in mounts:
        m["file"] = False
        if m.get("source"):
            # Held open from before anything is hidden.
            m["held"] = "/proc/self/fd/%d" % os.open(m["source"], os.O_PATH | os.O_CLOEXEC)
            m["file"] = not os.path.isdir(m["held"])
    files = {m["target"] for m in mounts if m["file"]}
    targets = {m["target"] for m in mounts}
    inner = {t for t in targets if any(beneath(t, other) for other in targets)}

    for path in orders["hide"]:
        mount("tmpfs", path, "tmpfs", MS_RDONLY, "size=4k,mode=755")
    mount("tmpfs", ROOT, "tmpfs", options="size=16m,mode=755")
    skeleton("/", ROOT, targets - inner, files)
    make_read_only(ROOT)
    mount("proc", ROOT + "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for m in mounts:
        where = ROOT + m["target"]
        if m["target"] in inner:
            point(where, m["file"])
        if m.get("source"):
            mount(m["held"], where, flags=MS_BIND | MS_REC)
        else:
            mount("tmpfs", where, "tmpfs", MS_NOSUID | MS_NODEV, m.get("options"))
    # Only now: a mount point inside a read-only volume had to be made first.
    for m in mounts:
        if m.get("readOnly"):
            make_read_only(ROOT + m["target"])
    os.chdir(ROOT)
    check(libc.syscall(ctypes.c_long(PIVOT_ROOT[os.uname().machine]), b".", b"."), "pivot_root")
    check(libc.umount2(b".", MNT_DETACH), "umount")
    os.chdir("/")


def beneath(path, folder):
    return path.startswith(folder.rstrip("/") + "/")


def skeleton(real, new, targets, files):
    """Shows the folder `real` as `new`, entry by entry, so that each of `targets` is there to be mounted on.

    A folder in which nothing is missing is bound whole.
    """
    for entry in os.scandir(real):
        path, shown = entry.path, os.path.join(new, entry.name)
        if entry.is_symlink():
            os.symlink(os.readlink(path), shown)
        elif entry.is_dir(follow_symlinks=False):
            wanted = {t for t in targets if beneath(t, path)}
            os.mkdir(shown)
            if path in targets or path in EMPTY:
                pass
            elif all(os.path.lexists(t) for t in wanted):
                mount(path, shown, flags=MS_BIND | MS_REC)
            else:
                skeleton(path, shown, wanted, files)
        elif not stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
            open(shown, "w").close()
            mount(path, shown, flags=MS_BIND)
    for target in targets:
        point(new + target[len(real.rstrip("/")):], target in files)


def point(path, file):
    """Makes what is to be mounted on, where it is missing: a file for a file."""
    if not os.path.lexists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if file:
            open(path, "w").close()
        else:
            os.mkdir(path)


def make_read_only(top):
    """`top` and all mounts below it. By hand: mount_setattr(2) is not on every kernel that can do the rest."""
    with open("/proc/self/mountinfo") as table:
        fields = [line.split() for line in table]
    for where, options in [(unescape(f[4]), f[5].split(",")) for f in fields]:
        if where == top or beneath(where, top):
            # All else must stay as it is: an ordinary user may not take a flag away.
            flags = sum(OPTION_FLAGS.get(option, 0) for option in options)
            if not {"relatime", "noatime"} & set(options):
                flags |= MS_STRICTATIME
            try:
                mount(None, where, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | flags)
            except OSError as error:
                if error.errno not in OUT_OF_REACH:
                    raise


def unescape(text):
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def main():
    orders = json.load(sys.stdin)
    if sys.argv[1] == "network":
        make_network(orders)
    else:
        run(orders)


if __name__ == "__main__":
    main()
