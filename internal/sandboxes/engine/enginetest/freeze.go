package enginetest

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// testFreeze is the control "freeze": what runs goes on where it was, or what
// can't be done leaves the sandbox as it was.
func testFreeze(t *testing.T, s *Subject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, *Subject){
		"a process counts on":      testCountsOn,
		"files alone":              testFreezeFiles,
		"much output":              testMuchOutput,
		"a terminal":               testTerminal,
		"twice, by other daemons":  testFreezeTwice,
		"a request on its way":     testRequestOnItsWay,
		"a damaged image":          testDamagedImage,
		"a guest that reads not":   testFreezeUnread,
		"destroyed while frozen":   testDestroyFrozen,
		"ended, or ending":         testFreezeEnding,
		"a place that is taken":    testFreezeTaken,
		"asked twice for the same": testFreezeAgain,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// freezer is the box's instance as what it must be.
func (b *box) freezer() engine.Freezer {
	b.t.Helper()
	f, ok := b.inst.(engine.Freezer)
	if !ok {
		b.t.Fatalf("the engine declares %s and makes a %T, which is not a Freezer", engine.ControlFreeze, b.inst)
	}
	return f
}

// freeze freezes into a directory of the test's own, which it returns, and
// looks at what is left.
func (b *box) freeze() string {
	b.t.Helper()
	dir := filepath.Join(b.t.TempDir(), "image")
	if err := b.freezer().Freeze(b.t.Context(), dir); err != nil {
		b.t.Fatalf("freeze: %v%s", err, b.readLog())
	}
	known, err := b.Keeper.Get(b.t.Context(), b.id)
	if err != nil || !known.Frozen || !known.Alive || known.Exit != nil {
		b.t.Fatalf("the keeper says of a frozen sandbox: %+v, %v", known, err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		b.t.Errorf("the image's mode is %v (%v)", info.Mode(), err)
	}
	if stats, err := b.inst.Stats(b.t.Context()); err == nil && stats.Pids != 0 {
		b.t.Errorf("a frozen sandbox has %d processes", stats.Pids)
	}
	return dir
}

func (b *box) thawFrom(dir string) {
	b.t.Helper()
	if err := b.freezer().Thaw(b.t.Context(), dir); err != nil {
		b.t.Fatalf("thaw: %v%s", err, b.readLog())
	}
	if known, err := b.Keeper.Get(b.t.Context(), b.id); err != nil || known.Frozen || !known.Alive || len(known.Pids) == 0 {
		b.t.Fatalf("the keeper says of a thawed sandbox: %+v, %v", known, err)
	}
}

// readUntil reads a command's output until it contains want, and returns it.
func (b *box) readUntil(conn net.Conn, want string) string {
	b.t.Helper()
	if err := conn.SetDeadline(time.Now().Add(longestWait)); err != nil {
		b.t.Fatal(err)
	}
	var all strings.Builder
	for frames := channel.NewReader(conn); !strings.Contains(all.String(), want); {
		kind, payload, err := frames.ReadFrame()
		if err != nil || kind == channel.FrameExit {
			b.t.Fatalf("the command ended before it said %q: %q %s %v", want, all.String(), payload, err)
		}
		if kind == channel.FrameStdout {
			all.Write(payload)
		}
	}
	return all.String()
}

// typeLine types a line for a command.
func (b *box) typeLine(conn net.Conn, line string) {
	b.t.Helper()
	if err := channel.NewWriter(conn).WriteFrame(channel.FrameStdin, []byte(line+"\n")); err != nil {
		b.t.Fatal(err)
	}
}

func shellExec(id, script string) channel.Exec {
	return channel.Exec{ID: id, Argv: []string{"/bin/sh", "-c", script}, Dir: "/", Stdin: true}
}

// testCountsOn: a process in the middle of counting, its files and its input.
func testCountsOn(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	file := "/tmp/freeze-" + b.id
	b.runScript("echo kept > " + file)
	conn := b.startCommand("count", shellExec("count", `i=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo n$i; sleep 0.02; done & read line; kill $!; echo "got $line"; cat `+file+"; rm "+file))
	defer conn.Close()
	got := b.readUntil(conn, "n5\n")
	dir := b.freeze()
	b.thawFrom(dir)
	got += b.readUntil(conn, "n"+strconv.Itoa(strings.Count(got, "\n")+10)+"\n")
	b.typeLine(conn, "word")
	end := b.collect(conn)
	if !strings.HasSuffix(end.out, "got word\nkept\n") || end.exit.Code != 0 {
		t.Errorf("the end: %+v", end)
	}
	got += end.out
	for i, line := range strings.Split(strings.TrimSuffix(got, "got word\nkept\n"), "\n") {
		if line != "" && line != "n"+strconv.Itoa(i+1) {
			t.Fatalf("line %d is %q: something is missing or there twice", i+1, line)
		}
	}
}

// testMuchOutput: a guest that writes without a pause, to a reader that reads
// all the time.
func testMuchOutput(t *testing.T, s *Subject) {
	t.Helper()
	const lines = 1_500_000
	b := s.createBox(t, nil)
	conn := b.startCommand("much", shellExec("much", "seq 1 "+strconv.Itoa(lines)))
	defer conn.Close()
	first := b.readUntil(conn, "\n1000\n")
	collected := make(chan result, 1)
	go func() { collected <- b.collect(conn) }()
	for range 2 {
		b.thawFrom(b.freeze())
	}
	got := first + (<-collected).out
	var want bytes.Buffer
	for i := range lines {
		want.WriteString(strconv.Itoa(i + 1))
		want.WriteByte('\n')
	}
	if got != want.String() {
		t.Errorf("%d bytes of output instead of %d, or others", len(got), want.Len())
	}
}

// testTerminal: a shell's variables, directory, terminal and its size.
func testTerminal(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	exec := shellExec("shell", `stty -echo; while read -r line; do eval "$line"; done; echo over`)
	exec.PTY, exec.Env = &channel.WindowSize{Rows: 41, Cols: 91}, map[string]string{"BEFORE": "given"}
	conn := b.startCommand("shell", exec)
	defer conn.Close()
	b.typeLine(conn, "cd /tmp; set_before=here; echo re''ady")
	b.readUntil(conn, "ready")
	b.thawFrom(b.freeze())
	b.typeLine(conn, `echo "$BEFORE $set_before $(pwd) $(stty size) d"one`)
	if got := b.readUntil(conn, "done"); !strings.Contains(got, "given here /tmp 41 91 done") {
		t.Errorf("the terminal says %q", got)
	}
	if err := channel.NewWriter(conn).WriteJSON(channel.FrameResize, channel.WindowSize{Rows: 10, Cols: 20}); err != nil {
		t.Fatal(err)
	}
	b.typeLine(conn, "echo $(stty size) now")
	b.readUntil(conn, "10 20 now")
	if err := channel.NewWriter(conn).WriteFrame(channel.FrameStdin, nil); err != nil {
		t.Fatal(err)
	}
	if end := b.collect(conn); !strings.Contains(end.out, "over") || end.exit.Code != 0 {
		t.Errorf("the end: %+v", end)
	}
}

// testFreezeTwice: each time by an engine that is new, as after a restart.
func testFreezeTwice(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	conn := b.startCommand("lines", shellExec("lines", `while read -r line; do echo "got $line"; done`))
	defer conn.Close()
	waited := make(chan engine.Exit, 1)
	go func(inst engine.Instance) {
		exit, err := inst.Wait(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		waited <- exit
	}(b.inst)
	for _, word := range []string{"one", "two"} {
		b.typeLine(conn, word)
		b.readUntil(conn, "got "+word)
		dir := b.freeze()
		inst, err := s.Reopen().Open(t.Context(), b.inst.Handle())
		if err != nil {
			t.Fatalf("open of a frozen instance: %v", err)
		}
		b.inst = inst
		b.thawFrom(dir)
	}
	select {
	case exit := <-waited:
		t.Errorf("wait returned because of a freeze: %+v", exit)
	default:
	}
	if err := b.inst.Signal(t.Context(), int(unix.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	if exit := <-waited; exit.Reason != "killed" {
		t.Errorf("wait after two freezes and a kill: %+v", exit)
	}
}

// testRequestOnItsWay: a client in the guest has asked over TCP, is frozen, and
// is answered after the thaw; one that is only connecting, too.
func testRequestOnItsWay(t *testing.T, s *Subject) {
	t.Helper()
	caps, err := s.Engine.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(caps.Enforces, engine.ControlNoNetwork) {
		return // The guest's loopback is the host's, and names have no addresses there.
	}
	far := s.uplink(t)
	b := s.createBox(t, nil)
	b.configureNames("held.example")
	conn := b.startCommand("client", channel.Exec{ID: "client", Dir: "/", Argv: []string{
		"/bin/bash", "-c", `exec 3<>/dev/tcp/127.64.0.1/443; echo question >&3; read -t 20 line <&3; echo "got $line"`,
	}})
	defer conn.Close()
	stream := <-far
	question := make([]byte, len("question\n"))
	if err := stream.SetReadDeadline(time.Now().Add(longestWait)); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Read(question); err != nil || string(question) != "question\n" {
		t.Fatalf("the request: %q, %v", question, err)
	}
	dir := b.freeze()
	if _, err := stream.Write([]byte("answer")); err != nil { // while it is frozen
		t.Fatal(err)
	}
	b.thawFrom(dir)
	if _, err := stream.Write([]byte(" at last\n")); err != nil {
		t.Fatal(err)
	}
	if r := b.collect(conn); r.out != "got answer at last\n" || r.exit.Code != 0 {
		t.Errorf("the client: %+v", r)
	}
	if _, err := b.Keeper.Call(t.Context(), b.id, channel.Call{Kind: channel.CallResume, Resume: &channel.Resume{
		Now: time.Now().UnixNano(), Seed: []byte("seed"),
	}}); err != nil {
		t.Errorf("resume: %v", err)
	}
	now, err := strconv.ParseInt(b.runScript("date +%s"), 10, 64)
	if off := time.Now().Unix() - now; err != nil || off < -1 || off > 20 {
		t.Errorf("the guest's clock is %d seconds off after a thaw (%v)", off, err)
	}
}
