#!/bin/bash
# Streams of a pod with one kubectl: exec, cp, attach and port-forward. KUBECTL names the program, default kubectl.
#
#   WINDLASS_STREAMS_KUBECONFIG=/tmp/streams.kubeconfig cargo test -p windlass-apiserver --test api -- --ignored serve_for_clients &
#   KUBECONFIG=/tmp/streams.kubeconfig contrib/streams/kubectl.sh
set -u
k=${KUBECTL:-kubectl}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
failed=0
check() { # NAME EXPECTED FOUND
  if [ "$2" = "$3" ]; then echo "ok      $1"; else echo "FAILED  $1: expected '$2', found '$3'"; failed=1; fi
}
sum() { sha256sum | cut -d' ' -f1; }

check "exec" "out" "$("$k" exec web -c c -- echo out)"
"$k" exec web -c c -- sh -c 'exit 3' >"$work/out" 2>&1
check "exit code" "3 command terminated with exit code 3" "$? $(cat "$work/out")"
"$k" exec web -c c -- no-such-program >/dev/null 2>"$work/out"
check "no program" "1" "$?"
"$k" exec web -c gone -- true >/dev/null 2>"$work/out"
check "no container" "1" "$(grep -c 'container not found ("gone")' "$work/out")"
check "stderr" "err" "$("$k" exec web -c c -- sh -c 'echo out; echo err >&2' 2>&1 >/dev/null)"
check "stdin" "hello" "$(echo hello | "$k" exec -i web -c c -- cat)"
check "tty" "0" "$(script -qec "stty rows 33 cols 77; $k exec -it web -c c -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; stty size | grep -q \"33 77\" && exit 0; done; exit 9'" /dev/null >/dev/null 2>&1; echo $?)"
head -c 104857600 /dev/urandom >"$work/big"
want=$(sum <"$work/big")
check "100 MiB in" "$want  -" "$("$k" exec -i web -c c -- sha256sum <"$work/big")"
check "100 MiB out" "$want" "$("$k" exec web -c c -- cat "$work/big" | sum)"
check "100 MiB both ways" "$want" "$("$k" exec -i web -c c -- cat <"$work/big" | sum)"
mkdir "$work/pod" && "$k" cp "$work/big" "web:$work/pod/in" -c c >/dev/null 2>&1
check "cp to" "$want" "$(sum <"$work/pod/in")"
"$k" cp "web:$work/big" "$work/back" -c c >/dev/null 2>&1
check "cp from" "$want" "$(sum <"$work/back")"
check "attach" "hello" "$(echo hello | "$k" attach -i web -c c 2>/dev/null)"

python3 - "$work/ports" <<'PY' &
import socket, sys, threading
def serve(c):
    got = b""
    while True:
        part = c.recv(65536)
        if not part: break
        got += part
    c.sendall(got[::-1]); c.close()
s = socket.create_server(("127.0.0.1", 0), backlog=128)
open(sys.argv[1], "w").write(str(s.getsockname()[1]))
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
PY
until [ -s "$work/ports" ]; do sleep 0.1; done
port=$(cat "$work/ports")
"$k" port-forward web ":$port" >"$work/forward" 2>&1 &
until grep -qs Forwarding "$work/forward"; do sleep 0.1; done
local=$(grep -m1 -o '127.0.0.1:[0-9]*' "$work/forward" | cut -d: -f2)
check "50 connections with half-close" "50" "$(python3 - "$local" <<'PY'
import os, socket, sys, threading
good = []
def one():
    data = os.urandom(300000)
    c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    c.sendall(data); c.shutdown(socket.SHUT_WR)
    got = b""
    while True:
        part = c.recv(65536)
        if not part: break
        got += part
    if got == data[::-1]: good.append(1)
all = [threading.Thread(target=one) for _ in range(50)]
[t.start() for t in all]; [t.join() for t in all]
print(len(good))
PY
)"
exit $failed
