"""terminal.py WORD SECONDS KEYS -- PROGRAM ARGUMENTS...   runs a program in a terminal until its screen says WORD.

Prints what the program drew, without control sequences. Exit status 0 when WORD came, 1 when it did not. KEYS are
typed at the start ("" for none). WORD must be a word without spaces: clients draw spaces as cursor movements.
"""
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

word, seconds, keys = sys.argv[1], float(sys.argv[2]), sys.argv[3]
program = sys.argv[sys.argv.index("--") + 1:]
# Questions that a client asks its terminal and waits for, with the answer.
QUESTIONS = [(b"\x1b[6n", b"\x1b[1;1R"), (b"\x1b[c", b"\x1b[?62;c"), (b"\x1b]10;?", b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
             (b"\x1b]11;?", b"\x1b]11;rgb:0000/0000/0000\x1b\\")]
CONTROL = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_=>78]")

child, terminal = pty.fork()
if child == 0:
    os.execvpe(program[0], program, {**os.environ, "TERM": "xterm-256color"})
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 130, 0, 0))
os.write(terminal, keys.encode())
drawn, until = b"", time.monotonic() + seconds
while time.monotonic() < until and word.encode() not in CONTROL.sub(b"", drawn):
    if not select.select([terminal], [], [], 0.1)[0]:
        continue
    try:
        piece = os.read(terminal, 65536)
    except OSError:  # the program has ended
        break
    if not piece:
        break
    drawn += piece
    for question, answer in QUESTIONS:
        for _ in range(piece.count(question)):
            os.write(terminal, answer)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
text = CONTROL.sub(b"", drawn)
sys.stdout.buffer.write(text)
sys.exit(0 if word.encode() in text else 1)
