package guest

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// pending is what may wait between a command and its host.
type pending struct{ input, output bool }

func everyPending() map[string]pending {
	return map[string]pending{
		"nothing": {}, "input that is not read": {input: true}, "output that is not read": {output: true}, "both": {input: true, output: true},
	}
}

// fill has so much input wait for a command that the host's stream takes no more.
func (a *agentHere) fill(e *execution, id string) {
	a.t.Helper()
	chunk := make([]byte, channel.MaxPayload)
	a.serving.Go(func() {
		for e.stream.WriteFrame(channel.FrameStdin, chunk) == nil {
			continue // until the command has ended, and its stream with it
		}
	})
	in := a.agent.commands.findCommand(id).stdio.input
	for full := false; !full; {
		in.mu.Lock()
		full = in.size >= inputLimit
		in.mu.Unlock()
		if a.t.Context().Err() != nil {
			a.t.Fatal("the input never filled up")
		}
		runtime.Gosched()
	}
}

// control has an agent signal a command beside the command's stream.
func (h *host) control(id string, signal channel.Signal) channel.Reply {
	h.t.Helper()
	stream, reply := h.call(channel.Call{Kind: channel.CallControl, Control: &channel.Control{Command: id, Signal: &signal}})
	_ = stream.Close()
	return reply
}

// A signal is taken whatever waits for the command, and one that kills is answered when the
// process is gone; what we killed ends as killed.
func TestAKillWaitsBehindNothing(t *testing.T) {
	const idle, flood = "echo $$; sleep 1000 & wait; exit 7", "echo $$; while :; do head -c 1000000 /dev/zero; done"
	for name, p := range everyPending() {
		for _, signal := range []channel.Signal{{Name: "KILL"}, {Name: "KILL", Tree: true}, {Name: "SIGTERM"}} {
			t.Run(name+"/"+signal.Name+" of a tree "+strconv.FormatBool(signal.Tree), func(t *testing.T) {
				a := startAgent(t, nil)
				script := idle
				if p.output {
					script = flood
				}
				e := a.start(channel.Exec{ID: "it", Argv: []string{"sh", "-c", script}, Stdin: true})
				e.until("\n")
				if p.input {
					a.fill(e, "it")
				}
				if reply := a.control("it", signal); !reply.OK {
					t.Fatalf("%+v", reply)
				}
				gone(t, e.started.PID)
				exit := e.wait()
				if want := strings.TrimPrefix(signal.Name, "SIG"); exit.Signal != want {
					t.Errorf("%+v, want the signal %s", exit, want)
				}
				a.run(channel.Exec{ID: "it", Argv: []string{"true"}}) // the id is free again
			})
		}
	}
}

// A shell that ends by itself because its child was killed with it was killed all the same.
func TestWhatWeKilledEndsAsKilled(t *testing.T) {
	a := startAgent(t, nil)
	for i := range 40 {
		e := a.start(channel.Exec{ID: strconv.Itoa(i), Argv: []string{"sh", "-c", "echo begun; sleep 1000"}})
		e.until("begun")
		if i%2 == 0 {
			if reply := a.control(strconv.Itoa(i), channel.Signal{Name: "KILL", Tree: true}); !reply.OK {
				t.Fatalf("%+v", reply)
			}
		} else {
			e.sendJSON(channel.FrameSignal, channel.Signal{Name: "KILL", Tree: true})
		}
		if exit := e.wait(); exit.Signal != "KILL" || exit.Code != 137 {
			t.Errorf("%d: %+v", i, exit)
		}
	}
	e := a.run(channel.Exec{Argv: []string{"sh", "-c", "exit 137"}}) // the control: nobody killed it
	if e.exit.Signal != "" || e.exit.Code != 137 {
		t.Errorf("%+v", e.exit)
	}
}

// The first process of a command may end of what happens to its children before it is
// killed itself; the end says that it was killed.
func TestAnEndThatAKillOvertook(t *testing.T) {
	c := &execCommand{}
	if exit := c.exitOf(137 << 8); exit.Signal != "" {
		t.Errorf("of itself: %+v", exit)
	}
	c.killed.Store(true)
	if exit := c.exitOf(137 << 8); exit.Signal != "KILL" || exit.Code != 137 {
		t.Errorf("killed: %+v", exit)
	}
	if exit := c.exitOf(15); exit.Signal != "TERM" || exit.Code != 143 {
		t.Errorf("by another signal first: %+v", exit)
	}
}

// The command's id alone tells what a control call is about.
func TestControlOfWhatIsNotThere(t *testing.T) {
	a := startAgent(t, nil)
	a.run(channel.Exec{ID: "over", Argv: []string{"true"}})
	live := a.start(channel.Exec{ID: "live", Argv: []string{"cat"}, Stdin: true})
	if reply := a.control("over", channel.Signal{Name: "KILL", Tree: true}); reply.OK || reply.Code != channel.CodeNotFound {
		t.Errorf("of one that has ended: %+v", reply)
	}
	if reply := a.control("live", channel.Signal{Name: "NOSUCH"}); reply.OK || !strings.Contains(reply.Error, "no signal") {
		t.Errorf("%+v", reply)
	}
	for name, c := range map[string]*channel.Control{"none": nil, "neither": {Command: "live"}} {
		stream, reply := a.call(channel.Call{Kind: channel.CallControl, Control: c})
		_ = stream.Close()
		if reply.OK {
			t.Errorf("%s: %+v", name, reply)
		}
	}
	live.send(channel.FrameStdin, nil)
	if exit := live.wait(); exit.Code != 0 {
		t.Errorf("the other command: %+v", exit)
	}
}

// A terminal's size is told past input that waits, too.
func TestResizePastInput(t *testing.T) {
	a := startAgent(t, nil)
	e := a.start(channel.Exec{ID: "it", Argv: []string{"sh", "-c", "trap 'stty size; exit 3' WINCH; stty raw; echo ready; while :; do sleep 0.01; done"}, PTY: &channel.WindowSize{Rows: 1, Cols: 2}})
	e.until("ready")
	a.fill(e, "it")
	stream, reply := a.call(channel.Call{Kind: channel.CallControl, Control: &channel.Control{Command: "it", Resize: &channel.WindowSize{Rows: 40, Cols: 100}}})
	_ = stream.Close()
	if !reply.OK {
		t.Fatalf("%+v", reply)
	}
	e.until("40 100")
	if exit := e.wait(); exit.Code != 3 {
		t.Errorf("%+v", exit)
	}
}
