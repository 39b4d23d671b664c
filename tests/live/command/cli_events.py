# SPDX-License-Identifier: Apache-2.0
"""latchkey run: events as JSON, also to slow and closed readers. At the end: all
commands report that standard output cannot be written."""

import fcntl
import json
import os
import re
import signal
import sys

sys.path.append(sys.path[0] + "/../support")

import command
import differences
from command import expect_exit, run, start
import live

zk = command.serve("--tick", "200")


def events_of(*words, **options):
    """`latchkey run` with its events on a pipe; gives its Result and the
    events."""
    read, write = os.pipe()
    with start("run", "--events-fd", str(write), *words, pass_fds=[write],
               **options) as process:
        os.close(write)
        done = process.finish()
    with os.fdopen(read) as stream:
        return done, [json.loads(line) for line in stream]


def check_event(event, name, lock, *members):
    """Check that the event has this name and lock, a time, these members, and
    no others."""
    assert event["event"] == name, event
    assert event["lock"] == lock, event
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
                        event["time"]), event
    assert set(event) == {"event", "time", "lock", *members}, event


GRANT_MEMBERS = ("node", "token", "session")


def grant_and_release_are_events():
    done, events = events_of("-T", "10", "/told", "sh", "-c",
                             "echo $LATCHKEY_NODE $LATCHKEY_FENCING_TOKEN "
                             "$LATCHKEY_SESSION")
    assert (done.code, done.err) == (0, ""), done
    acquired, released = events
    check_event(acquired, "acquired", "/told", *GRANT_MEMBERS, "lease_ms")
    check_event(released, "released", "/told", *GRANT_MEMBERS)
    for event in events:
        assert [event[key] for key in GRANT_MEMBERS] == done.out.split(), (event, done)
    assert 5000 < acquired["lease_ms"] <= 10000, acquired


def waiting_event_has_position_and_holder():
    with start("run", "-i", "first", "/place", "sleep", "600") as holder:
        command.wait_until_held("/place")
        done, events = events_of("-w", "3", "/place", "true")
        assert done.code == 124, done
        waiting, failed = events
        check_event(waiting, "waiting", "/place", "node", "position", "holder")
        assert waiting["position"] == 1 and waiting["holder"] == "first"
        assert waiting["node"].startswith("/place/_c_"), waiting
        check_event(failed, "failed", "/place", "reason", "code")
        assert failed["code"] == 124, failed
        holder.terminate()


def revocation_is_an_event():
    read, write = os.pipe()
    with start("run", "--events-fd", str(write), "/asked", "sleep", "600",
               pass_fds=[write]) as process:
        os.close(write)
        command.wait_until_held("/asked")
        expect_exit(0, "revoke", "/asked")
        # The revocation ends COMMAND by TERM; then the lock is released.
        assert process.finish().code == 128 + signal.SIGTERM
    with os.fdopen(read) as stream:
        acquired, revoked, released = [json.loads(line) for line in stream]
    check_event(revoked, "revoked", "/asked", *GRANT_MEMBERS, "lease_ms")
    assert [revoked[key] for key in GRANT_MEMBERS] == [acquired[key] for key in GRANT_MEMBERS]
    check_event(released, "released", "/asked", *GRANT_MEMBERS)


def holder_data_that_is_not_utf8_is_base64():
    with start("run", "-i", b"\xff\xfe", "/bytes", "sleep", "600") as holder:
        command.wait_until_held("/bytes")
        _, (waiting, _) = events_of("-w", "3", "/bytes", "true")
        # "data_base64" stands in place of "holder".
        check_event(waiting, "waiting", "/bytes", "node", "position", "data_base64")
        assert waiting["data_base64"] == "//4=", waiting
        holder.terminate()


def json_events_go_to_standard_error():
    done = expect_exit(0, "run", "--json", "-v", "/err", "true")
    events = [json.loads(line) for line in done.err.splitlines()]
    assert [e["event"] for e in events] == ["acquired", "released"], events
    done = run("run", "--json", "--connect-timeout", "0.3", "-z",
               "127.0.0.1:1", "/err", "true")
    (failed,) = [json.loads(line) for line in done.err.splitlines()]
    check_event(failed, "failed", "/err", "reason", "code")
    assert done.code == failed["code"] == 125, done
    assert "Connection refused" in failed["reason"], done


def json_events_include_notices():
    path = "/noticed"
    # A node with a name of Curator's layout, in a queue of the native layout.
    expect_exit(0, "create", "-p", path + "/_c_0-lock-0000000000")
    done = run("run", "--json", "--layout", "native", path, "true")
    events = [json.loads(line) for line in done.err.splitlines()]
    kinds = [e["event"] for e in events]
    assert kinds == ["acquired", "notice", "released"] or \
        kinds == ["notice", "acquired", "released"], events
    notice = events[kinds.index("notice")]
    check_event(notice, "notice", path, "reason")
    assert "_c_0-lock-0000000000" in notice["reason"], events
    done = run("run", "--json", "-q", "--layout", "native", path, "true")
    assert '"notice"' not in done.err, done


def failure_is_an_event_and_a_message():
    done, (acquired, failed, released) = events_of("/fail", "no-such-command")
    assert done.code == 127 and "no-such-command" in done.err, done
    check_event(failed, "failed", "/fail", "reason", "code")
    assert failed["code"] == 127, failed
    check_event(released, "released", "/fail", *GRANT_MEMBERS)


def usage_error_is_an_event():
    for words, reason in ((("--no-such", "/l", "true"), "--no-such"),
                          (("/a//b", "true"), "/a//b"), ((), "LOCK is missing"),
                          (("/l",), "COMMAND")):
        done, (failed,) = events_of(*words)
        assert done.code == failed["code"] == 125, done
        assert failed["event"] == "failed" and reason in failed["reason"], failed
        assert done.err == "latchkey: %s\n" % failed["reason"], done
    for words in ("--bogus", "run"), ("-w", "x", "elect"):
        done = run(*words, "--json", "/l", "true")
        assert json.loads(done.err)["code"] == done.code == 125, done


def signal_while_waiting_is_a_failed_event():
    with start("run", "/sig", "sleep", "600") as holder:
        command.wait_until_held("/sig")
        with start("run", "--json", "/sig", "true") as waiter:
            command.wait_until_queued("/sig", 2)
            waiter.send_signal(signal.SIGINT)
            done = waiter.finish()
            failed = json.loads(done.err.splitlines()[-1])
            assert failed["event"] == "failed" and failed["code"] == 130, done
        holder.terminate()


def lost_lock_is_one_event():
    read, write = os.pipe()
    with start("run", "--events-fd", str(write), "/lost", "sleep", "600",
               pass_fds=[write]) as process:
        os.close(write)
        stream = os.fdopen(read)
        acquired = json.loads(stream.readline())
        expect_exit(0, "delete", acquired["node"])
        done = process.finish()
        events = [json.loads(line) for line in stream]
        stream.close()
    assert done.code == 123, done
    assert [e["event"] for e in events] == ["lost"], events
    check_event(events[0], "lost", "/lost", *GRANT_MEMBERS, "reason")
    assert events[0]["token"] == acquired["token"]


def events_may_go_to_standard_output():
    done = expect_exit(0, "run", "--events-fd", "1", "/one", "echo", "said")
    assert sorted(line[:8] for line in done.out.splitlines()) == [
        "said", '{"event"', '{"event"'], done


# ---- readers --------------------------------------------------------------------

def full_pipe():
    """A pipe into which nothing can be written until it is read."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(write, False)
    try:
        while os.write(write, b"x" * 512):
            pass
    except BlockingIOError:
        pass
    os.set_blocking(write, True)
    return read, write


def full_pipe_for_events_does_not_cost_the_lock():
    read, write = full_pipe()
    # COMMAND runs longer than the session timeout of 2 s. Events and messages
    # go to the full pipe.
    with start("run", "-T", "2", "-v", "--events-fd", str(write), "/sleepy",
               "sh", "-c", "sleep 4; exit 3", pass_fds=[write], stderr=write
               ) as process:
        done = process.finish()
    assert done.code == 3, done
    os.close(write)
    os.close(read)


def late_reader_gets_all_events():
    read, write = full_pipe()
    with start("run", "--events-fd", str(write), "/late", "sleep", "1",
               pass_fds=[write]) as process:
        os.close(write)
        command.wait_until_held("/late")
        with os.fdopen(read) as stream:
            text = stream.read()
        assert process.finish().code == 0
    # The events follow the bytes with which full_pipe() has filled the pipe.
    events = [json.loads(line) for line in text.lstrip("x").splitlines()]
    assert [e["event"] for e in events] == ["acquired", "released"], events


def pipe_for_events_without_a_reader_does_not_cost_the_lock():
    read, write = os.pipe()
    os.close(read)
    with start("run", "-v", "--events-fd", str(write), "/gone", "sh", "-c",
               "exit 4", pass_fds=[write], stderr=write) as process:
        assert process.finish().code == 4
    os.close(write)


# A server without persistent watches refuses it.
WATCHES = [("watch", "/")] if differences.has("PERSISTENT_WATCHES") else []


def output_that_cannot_be_written_is_an_error():
    with open("/dev/full", "w") as full:
        for words in (("get", "/zookeeper/config"), ("ls", "/"), ("stat", "/"),
                      ("status", "/x"), ("--help",), ("-V",),
                      ("create", "-s", "/full-"), *WATCHES,
                      ("watch", "--children", "/"), ("members", "-w", "/")):
            done = run(*words, stdout=full)
            if words[0] == "get" and done.code == 0:
                continue  # the node has no data, so nothing is written
            assert done.code == 125 and "standard output" in done.err, done

    def close_standard_output():
        os.close(1)
    for words in (("ls", "/"), *WATCHES, ("members", "-w", "/")):
        done = run(*words, preexec_fn=close_standard_output, stdout=None)
        assert done.code == 125 and "standard output" in done.err, done


live.run(live.together(
    grant_and_release_are_events,
    revocation_is_an_event,
    waiting_event_has_position_and_holder,
    holder_data_that_is_not_utf8_is_base64,
    json_events_go_to_standard_error,
    json_events_include_notices,
    failure_is_an_event_and_a_message,
    usage_error_is_an_event,
    signal_while_waiting_is_a_failed_event,
    lost_lock_is_one_event,
    events_may_go_to_standard_output,
    full_pipe_for_events_does_not_cost_the_lock,
    late_reader_gets_all_events,
    pipe_for_events_without_a_reader_does_not_cost_the_lock,
    output_that_cannot_be_written_is_an_error))
