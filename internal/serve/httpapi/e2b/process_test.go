package e2b

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
)

func shell(text string) string {
	return fmt.Sprintf(`{"process":{"cmd":"/bin/bash","args":["-l","-c",%q]},"stdin":true}`, text)
}

func input(pid int, text string) string {
	return fmt.Sprintf(`{"process":{"pid":%d},"input":{"stdin":%q}}`, pid, base64.StdEncoding.EncodeToString([]byte(text)))
}

func TestACommandsLife(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		first := s.open(processService+"Start", `{"process":{"cmd":"/bin/bash","args":["-l","-c","read a; echo $a; read b; echo $b >&2; exit 3"],"envs":{"E":"1"},"cwd":"~"},"tag":"mine"}`)
		pid := first.started()
		list := s.got(processService+"List", `{}`)["processes"].([]any)
		if len(list) != 1 {
			t.Fatalf("the list is %v", list)
		}
		answered := list[0].(map[string]any)
		if config := answered["config"].(map[string]any); answered["tag"] != "mine" || int(answered["pid"].(float64)) != pid || config["cmd"] != "/bin/bash" || config["cwd"] != "~" {
			t.Errorf("the list says %v", answered)
		}
		s.got(processService+"SendInput", input(pid, "one\n"))
		first.until("one")
		first.body.Close() // a client that goes away leaves the command alone
		second := s.open(processService+"Connect", `{"process":{"tag":"mine"}}`)
		if second.started() != pid {
			t.Error("connected to another")
		}
		s.got(processService+"SendInput", input(pid, "two\n"))
		if m := second.next(); m.Event.Data == nil || string(m.Event.Data.Stderr) != "two\n" {
			t.Errorf("after the connection came %+v", m)
		}
		last, problem := second.finish()
		if problem != nil || last == nil || *last != (end{ExitCode: 3, Exited: true, Status: "exit status 3", Error: "exit status 3"}) {
			t.Errorf("it ended with %+v, %v", last, problem)
		}
		late := s.open(processService+"Connect", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
		late.started()
		if last, _ := late.finish(); last == nil || last.ExitCode != 3 {
			t.Errorf("a late client was told %+v", last)
		}
		if list := s.got(processService+"List", `{}`)["processes"].([]any); len(list) != 0 {
			t.Errorf("the list still has %v", list)
		}
		if status, _ := s.ask(processService+"SendSignal", fmt.Sprintf(`{"process":{"pid":%d},"signal":"SIGNAL_SIGKILL"}`, pid)); status != http.StatusNotFound {
			t.Errorf("a signal to what has ended: %d", status)
		}
	})
}

// TestLongLaunchesAreKeptShort: what clients send is not kept whole for as long as
// their commands are known.
func TestLongLaunchesAreKeptShort(t *testing.T) {
	long := strings.Repeat("x", maxLaunch)
	for name, c := range map[string]struct {
		config processConfig
		short  bool
	}{
		"argument":    {processConfig{Cmd: "sh", Args: []string{long}}, true},
		"environment": {processConfig{Cmd: "sh", Envs: map[string]string{"a": long}}, true},
		"program":     {processConfig{Cmd: long + "x"}, true},
		"usual":       {processConfig{Cmd: "sh", Args: []string{"-c", "true"}}, false},
	} {
		got := launch{config: c.config, tag: "t"}.briefLaunch()
		kept := len(got.config.Cmd) + len(strings.Join(got.config.Args, "")) + len(got.config.Envs["a"])
		if got.tag != "t" || kept > maxLaunch+len("...") || (len(got.config.Args)+len(got.config.Envs) == 0) != c.short {
			t.Errorf("%s: %d bytes, tag %s", name, kept, got.tag)
		}
	}
}

func TestInputIsForWhoTakesIt(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		deaf := s.open(processService+"Start", `{"process":{"cmd":"/bin/sleep","args":["60"]},"stdin":false}`).started()
		terminal := s.open(processService+"Start", `{"process":{"cmd":"/bin/cat"},"pty":{}}`)
		tty := terminal.started()
		for name, c := range map[string]struct{ call, body, code string }{
			"stdin of one without":        {"SendInput", input(deaf, "x"), "failed_precondition"},
			"stdin of a terminal":         {"SendInput", input(tty, "x"), "failed_precondition"},
			"a terminal's of one without": {"SendInput", fmt.Sprintf(`{"process":{"pid":%d},"input":{"pty":"eA=="}}`, deaf), "failed_precondition"},
			"both":                        {"SendInput", fmt.Sprintf(`{"process":{"pid":%d},"input":{"pty":"eA==","stdin":"eA=="}}`, tty), "invalid_argument"},
			"neither":                     {"SendInput", fmt.Sprintf(`{"process":{"pid":%d},"input":{}}`, tty), "invalid_argument"},
			"the end of a terminal":       {"CloseStdin", fmt.Sprintf(`{"process":{"pid":%d}}`, tty), "failed_precondition"},
			"the size of no terminal":     {"Update", fmt.Sprintf(`{"process":{"pid":%d},"pty":{"size":{"cols":9,"rows":9}}}`, deaf), "failed_precondition"},
		} {
			if status, body := s.ask(processService+c.call, c.body); status != http.StatusBadRequest || !strings.Contains(body, c.code) {
				t.Errorf("%s: %d %s", name, status, body)
			}
		}
		s.got(processService+"Update", fmt.Sprintf(`{"process":{"pid":%d},"pty":{"size":{"cols":9,"rows":9}}}`, tty))
		s.got(processService+"SendInput", fmt.Sprintf(`{"process":{"pid":%d},"input":{"pty":"eHl6Cg"}}`, tty)) // unpadded
		terminal.until("xyz")
		s.got(processService+"SendSignal", fmt.Sprintf(`{"process":{"pid":%d},"signal":15}`, tty))
		if last, _ := terminal.finish(); last == nil || last.Status != "signal: terminated" || last.ExitCode != -1 || last.Exited {
			t.Errorf("it ended with %+v", last)
		}
	})
}

func TestTimeouts(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		killed := s.open(processService+"Start", shell("sleep 60"), "Connect-Timeout-Ms", "300")
		killed.started()
		if _, problem := killed.finish(); problem == nil || problem.Code != codeDeadline {
			t.Errorf("the stream ended with %v", problem)
		}
		alive := s.open(processService+"Start", shell("read a; echo $a"))
		pid := alive.started()
		short := s.open(processService+"Connect", fmt.Sprintf(`{"process":{"pid":%d}}`, pid), "Connect-Timeout-Ms", "50")
		short.started()
		if _, problem := short.finish(); problem == nil || problem.Code != codeDeadline || !strings.Contains(problem.Message, "goes on") {
			t.Errorf("the stream ended with %v", problem)
		}
		s.got(processService+"SendInput", input(pid, "on\n"))
		alive.until("on")
	})
}

func TestKeepAlive(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		e := s.open(processService+"Start", shell("sleep 60"), "Keepalive-Ping-Interval", "1")
		e.started()
		if m := e.next(); m.Event.Keepalive == nil {
			t.Errorf("a silent stream sent %+v", m)
		}
	})
}

func TestARefusedCommand(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.box.Refuse = "rm -rf /"
		_, problem := s.open(processService+"Start", shell("rm -rf /")).finish()
		if problem == nil || problem.Code != codePermission || !strings.Contains(problem.Message, "rule no-such-thing denies it") {
			t.Errorf("got %v", problem)
		}
	})
}

// TestWhatRulesSee: only the very form in which SDKs hand a text to a shell is
// judged as that text.
func TestWhatRulesSee(t *testing.T) {
	for want, argv := range map[string][]string{
		"ls": {"/bin/bash", "-l", "-c", "ls"},
	} {
		if got := shellText(argv); got != want {
			t.Errorf("%q is judged as %q", argv, got)
		}
	}
	for _, argv := range [][]string{
		{"/bin/bash", "-l", "-c", "ls", "more"},
		{"/bin/sh", "-l", "-c", "ls"},
		{"bash", "-l", "-c", "ls"},
		{"/bin/bash", "-c", "ls"},
		{"/bin/bash", "-c", "-l", "ls"},
		{"/bin/bash", "-i", "-l"},
		{"ls"},
		{"/bin/bash", "-l", "-c", ""},
	} {
		if got := shellText(argv); got != "" {
			t.Errorf("%q is judged as %q", argv, got)
		}
	}
}

// endless is a command that never stops to write.
type endless struct {
	*backendtest.Boxes
	wrote atomic.Int64
}

func (e *endless) Attach(context.Context, string, string, int64) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		frames := channel.NewConn(far)
		chunk := make([]byte, channel.MaxPayload)
		for err := frames.WriteJSON(channel.FrameStarted, channel.Started{PID: 1}); err == nil; err = frames.WriteFrame(channel.FrameStdout, chunk) {
			e.wrote.Add(int64(len(chunk)))
		}
	}()
	return near, nil
}

// TestASlowReaderHoldsTheCommandBack: what a client does not read is kept nowhere
// but in the sockets' buffers.
func TestASlowReaderHoldsTheCommandBack(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		flood := &endless{Boxes: s.boxes}
		s.data.cfg.Sandboxes = flood
		e := s.open(processService+"Start", `{"process":{"cmd":"/bin/true"}}`)
		e.started()
		last := int64(-1)
		for still := 0; still < 20; { // until nothing moves any more
			now := flood.wrote.Load()
			if now > 64<<20 {
				t.Fatalf("%d bytes were taken from the command, and none was read", now)
			}
			if still++; now != last {
				last, still = now, 0
			}
			time.Sleep(10 * time.Millisecond)
		}
		for read := int64(0); read <= last; {
			m := e.next()
			read += int64(len(m.Event.Data.Stdout))
		}
		if err := s.boxes.Destroy(t.Context(), boxID); err != nil {
			t.Fatal(err)
		}
		broken(t, e)
	})
}

// mute attaches to what never says a word, and tells that it did.
type mute struct {
	*backendtest.Boxes
	attached func()
}

func (m mute) Attach(context.Context, string, string, int64) (net.Conn, error) {
	m.attached()
	near, _ := net.Pipe()
	return near, nil
}

// TestAFreezeBeforeTheFirstEvent: a guest that could not even say that the command
// has started keeps no client waiting.
func TestAFreezeBeforeTheFirstEvent(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		// Nothing is sent before the stream's end, so its client can't freeze it meanwhile.
		s.data.cfg.Sandboxes = mute{s.boxes, func() { s.freezes("ap-1") }}
		e := s.open(processService+"Start", shell("true"))
		if _, problem := e.finish(); problem == nil || problem.Code != codePrecondition || !strings.Contains(problem.Message, "ap-1") {
			t.Errorf("the stream ended with %v", problem)
		}
	})
}

// slow takes as long as it may for a file.
type slow struct{ *backendtest.Boxes }

func (slow) File(ctx context.Context, _ string, _ channel.File) (channel.FileInfo, error) {
	<-ctx.Done()
	return channel.FileInfo{}, ctx.Err()
}

func TestACallHasItsClientsTime(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.data.cfg.Sandboxes = slow{s.boxes}
		r := s.request(http.MethodPost, filesystemService+"Stat", strings.NewReader(`{"path":"x"}`))
		r.Header.Set("Content-Type", typeUnary)
		r.Header.Set("Connect-Timeout-Ms", "20")
		if status, body := s.do(r); status != http.StatusGatewayTimeout || !strings.Contains(body, `"deadline_exceeded"`) {
			t.Errorf("%d %s", status, body)
		}
	})
}

// broken reads a stream until it breaks off, which is not its end.
func broken(t *testing.T, e *events) {
	t.Helper()
	for {
		m, err := e.try()
		if errors.Is(err, io.ErrUnexpectedEOF) || err != nil && !errors.Is(err, io.EOF) {
			return
		}
		if err != nil || m.end {
			t.Fatalf("the stream ended with %v %+v", err, m)
		}
	}
}

func TestAKilledSandboxBreaksItsStreams(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.got(filesystemService+"MakeDir", `{"path":"d"}`)
		running := s.open(processService+"Start", shell("sleep 60"))
		running.started()
		flooding := s.open(processService+"Start", `{"process":{"cmd":"/usr/bin/head","args":["-c","30000000","/dev/zero"]}}`)
		flooding.started() // and is read no more, until the sandbox is gone
		watching := s.open(filesystemService+"WatchDir", `{"path":"d"}`)
		watching.next()
		if err := s.boxes.Destroy(t.Context(), boxID); err != nil {
			t.Fatal(err)
		}
		for _, e := range []*events{running, watching, flooding} {
			broken(t, e)
		}
		if status, _ := s.do(s.request(http.MethodGet, "/health", nil)); status != http.StatusBadGateway {
			t.Errorf("its health is %d", status)
		}
	})
}

// TestARevokedTokenBreaksStreams of the sandboxes that it made, and connections to their
// ports; what runs in them goes on.
func TestARevokedTokenBreaksStreams(t *testing.T) {
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ann, _, err := book.Issue(t.Context(), token.Grant{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	s := newDataStageOf(t, sandbox.Owner{Token: ann.ID}, book)
	s.got(filesystemService+"MakeDir", `{"path":"d"}`)
	running := s.open(processService+"Start", shell("read a; touch $HOME/still"))
	pid := running.started()
	watching := s.open(filesystemService+"WatchDir", `{"path":"d"}`)
	watching.next()
	served, over := make(chan struct{}), make(chan struct{})
	s.serves(3000, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		close(served)
		<-r.Context().Done()
		close(over)
	})
	res, err := s.server.Client().Do(s.port("3000", "/"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	<-served
	if _, err := book.Revoke(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*events{running, watching} {
		if _, problem := e.finish(); problem == nil || problem.Code != codeUnauthenticated || !strings.Contains(problem.Message, "not valid any more") {
			t.Errorf("a stream ended with %v", problem)
		}
	}
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("what a port served came to a good end")
	}
	<-over
	if status, _ := s.ask(processService+"SendInput", input(pid, "x")); status != http.StatusUnauthorized {
		t.Errorf("input for it: %d", status)
	}
	if all := s.box.Commands.List(); len(all) != 1 || all[0].Exit != nil {
		t.Errorf("its commands: %v", all)
	}
}

func TestAPauseBreaksStreams(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		e := s.open(processService+"Start", shell("sleep 60"))
		e.started()
		s.box.Become(sandbox.Paused)
		if err := s.box.Tell(t.Context()); err != nil {
			t.Fatal(err)
		}
		broken(t, e)
	})
}

// freezes lets the box be frozen for a request.
func (s *dataStage) freezes(approval string) {
	s.t.Helper()
	s.people.Ask(approval)
	s.box.Holds.Held(backendtest.Hold(approval, true))
}

func TestAFrozenSandboxEndsStreams(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		e := s.open(processService+"Start", shell("read a; echo on with $a"))
		pid := e.started()
		s.freezes("ap-1")
		_, problem := e.finish()
		says := func(problem *failure) {
			t.Helper()
			if problem == nil || problem.Code != codePrecondition ||
				!strings.Contains(problem.Message, "request ap-1 for python foo 1.0 (on the host: cofferdam approvals approve ap-1)") {
				t.Errorf("the stream ended with %v", problem)
			}
		}
		says(problem)
		s.box.AwaitState(t.Context(), suspend.Frozen)
		for _, call := range []string{"Connect", "Start"} {
			_, problem = s.open(processService+call, map[string]string{"Connect": fmt.Sprintf(`{"process":{"pid":%d}}`, pid), "Start": shell("true")}[call]).finish()
			says(problem)
		}
		if status, body := s.do(s.request(http.MethodGet, "/files?path=x", nil)); status != http.StatusConflict || !strings.Contains(body, "ap-1") {
			t.Errorf("a file of it: %d %s", status, body)
		}
		if status, body := s.ask(processService+"SendInput", input(pid, "x")); status != http.StatusBadRequest || !strings.Contains(body, "ap-1") {
			t.Errorf("input for it: %d %s", status, body)
		}
		if status, _ := s.do(s.request(http.MethodGet, "/health", nil)); status != http.StatusNoContent {
			t.Errorf("its health is %d", status)
		}
		s.people.Answer()
		s.box.AwaitState(t.Context(), suspend.Running)
		again := s.open(processService+"Connect", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
		again.started()
		s.got(processService+"SendInput", input(pid, "it\n"))
		again.until("on with it")
	})
}

// TestAWaitEndsNoStream: somebody may answer within the client's patience; when
// that is nearly over the client hears what is waited for.
func TestAWaitEndsNoStream(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		waiting := s.open(processService+"Start", shell("read a; echo on"))
		pid := waiting.started()
		s.people.Ask("ap-1")
		s.box.Holds.Held(backendtest.Hold("ap-1", false))
		hurried := s.open(processService+"Connect", fmt.Sprintf(`{"process":{"pid":%d}}`, pid), "Connect-Timeout-Ms", "1000")
		hurried.started()
		if _, problem := hurried.finish(); problem == nil || problem.Code != codePrecondition || !strings.Contains(problem.Message, "ap-1") {
			t.Errorf("the stream ended with %v", problem)
		}
		s.got(processService+"SendInput", input(pid, "x\n"))
		waiting.until("on")
	})
}

func TestEndEvents(t *testing.T) {
	for _, c := range []struct {
		exit channel.Exit
		want end
	}{
		{channel.Exit{}, end{Exited: true, Status: "exit status 0"}},
		{channel.Exit{Code: 137, Signal: "KILL"}, end{ExitCode: -1, Status: "signal: killed", Error: "signal: killed"}},
		{channel.Exit{Code: 1, Error: "2 processes of the command could not be killed"}, end{ExitCode: 1, Exited: true, Status: "exit status 1", Error: "2 processes of the command could not be killed"}},
	} {
		if got := endEvent(c.exit); got != c.want {
			t.Errorf("%+v became %+v", c.exit, got)
		}
	}
}
