package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// CallSubject is an engine of calls under test, with code in its language that does what
// the suite needs.
type CallSubject struct {
	Caller engine.Caller
	// Code is code in the engine's first language.
	Code CallCode
}

// CallCode is code that does what its field says.
type CallCode struct {
	Two     string // comes to the JSON 2
	Nothing string // comes to nothing
	Writes  string // writes "out\n" to the one output and "err\n" to the other
	Throws  string // fails with "boom" in the message
	Wrong   string // is no code
	ForEver string // computes without end
	Hungry  string // takes memory without end, and keeps it
	Deep    string // nests without end
	Chatty  string // writes "x" without end
	Long    string // comes to a text of 4 MiB
	Never   string // waits for what never comes
	// Leaves changes all that it can reach for whoever comes after it in the same place;
	// Finds comes to true if it finds any of that.
	Leaves, Finds string
	// Both is Leaves and then Finds, in one call: it comes to true.
	Both string
	// Tool comes to what the tool of the name answers to the arguments, a JSON object;
	// where it is refused, to the text of the refusal.
	Tool func(name, arguments string) string
	// Reaches tries files, network, processes and the environment, and comes to the list
	// of what it could reach.
	Reaches string
}

// CallSuite runs the contract of engine.Caller.
func CallSuite(t *testing.T, s CallSubject) {
	t.Helper()
	t.Run("values", s.values)
	t.Run("failures", s.failures)
	t.Run("limits", s.testLimits)
	t.Run("bad calls", s.badCalls)
	t.Run("nothing stays", s.nothingStays)
	t.Run("nothing is reached", s.nothingIsReached)
	t.Run("tools", s.testTools)
	t.Run("many at once", s.testMany)
	t.Run("who leaves", s.leaves)
	t.Run("close", s.testClose)
}

// callCode runs code that has to run.
func (s CallSubject) callCode(t *testing.T, call engine.Call) engine.CallResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longestWait*4)
	defer cancel()
	r, err := s.Caller.Call(ctx, call)
	if err != nil {
		t.Fatalf("the call %.60q: %v", call.Code, err)
	}
	return r
}

func (s CallSubject) runCode(t *testing.T, code string) engine.CallResult {
	t.Helper()
	return s.callCode(t, engine.Call{Code: code})
}

// wantValue fails the test unless code comes to a value.
func (s CallSubject) wantValue(t *testing.T, call engine.Call, value string) {
	t.Helper()
	if r := s.callCode(t, call); r.Failure != nil || r.Value != value {
		t.Errorf("%.80q came to %.200q, %+v; want %s", call.Code, r.Value, r.Failure, value)
	}
}

func (s CallSubject) values(t *testing.T) {
	for _, language := range append([]string{""}, s.Caller.Languages()[:1]...) {
		s.wantValue(t, engine.Call{Language: language, Code: s.Code.Two}, "2")
	}
	s.wantValue(t, engine.Call{Code: s.Code.Nothing}, "")
	r := s.runCode(t, s.Code.Writes)
	if r.Stdout != "out\n" || r.Stderr != "err\n" || r.Truncated || r.Failure != nil || r.MemoryBytes <= 0 {
		t.Errorf("%+v", r)
	}
}

// wantFailure has code fail in one way.
func (s CallSubject) wantFailure(t *testing.T, call engine.Call, kind engine.FailureKind) engine.CallResult {
	t.Helper()
	r := s.callCode(t, call)
	switch {
	case r.Failure == nil:
		t.Errorf("%.60q came to %.80q; it has to fail with %s", call.Code, r.Value, kind)
		r.Failure = &engine.CallFailure{}
	case r.Failure.Kind != kind || r.Failure.Message == "" || r.Value != "":
		t.Errorf("%.60q failed with %+v, value %.60q; want %s", call.Code, *r.Failure, r.Value, kind)
	}
	return r
}

func (s CallSubject) failures(t *testing.T) {
	r := s.wantFailure(t, engine.Call{Code: s.Code.Throws}, engine.FailThrown)
	if !strings.Contains(r.Failure.Message, "boom") {
		t.Errorf("it says %q", r.Failure.Message)
	}
	s.wantFailure(t, engine.Call{Code: s.Code.Wrong}, engine.FailSyntax)
	s.wantFailure(t, engine.Call{Code: s.Code.Never}, engine.FailPending)
	s.wantValue(t, engine.Call{Code: s.Code.Two}, "2")
}

func (s CallSubject) testLimits(t *testing.T) {
	t.Run("time", func(t *testing.T) {
		s.wantFailure(t, engine.Call{Code: s.Code.ForEver, Limits: engine.CallLimits{Time: 20 * time.Millisecond}}, engine.FailTime)
		s.wantFailure(t, engine.Call{Code: s.Code.ForEver, Limits: engine.CallLimits{Life: 20 * time.Millisecond}}, engine.FailTime)
	})
	t.Run("memory", func(t *testing.T) {
		const most = 16 << 20
		r := s.wantFailure(t, engine.Call{Code: s.Code.Hungry, Limits: engine.CallLimits{MemoryBytes: most, Time: time.Minute}}, engine.FailMemory)
		if r.MemoryBytes > most+(1<<20) {
			t.Errorf("it had %d bytes", r.MemoryBytes)
		}
		if r.MemoryBytes < most/2 {
			t.Errorf("it had %d bytes only: the limit was not what stopped it", r.MemoryBytes)
		}
	})
	t.Run("stack", func(t *testing.T) {
		s.wantFailure(t, engine.Call{Code: s.Code.Deep}, engine.FailStack)
	})
	t.Run("output", func(t *testing.T) {
		r := s.wantFailure(t, engine.Call{Code: s.Code.Chatty, Limits: engine.CallLimits{OutputBytes: 1_000, Time: 50 * time.Millisecond}}, engine.FailTime)
		if len(r.Stdout)+len(r.Stderr) != 1_000 || !r.Truncated {
			t.Errorf("it wrote %d and %d bytes, truncated %t", len(r.Stdout), len(r.Stderr), r.Truncated)
		}
		s.wantFailure(t, engine.Call{Code: s.Code.Long}, engine.FailOutput)
		if r := s.callCode(t, engine.Call{Code: s.Code.Long, Limits: engine.CallLimits{OutputBytes: 8 << 20}}); len(r.Value) != 4<<20+2 {
			t.Errorf("a text of 4 MiB came as %d bytes, %+v", len(r.Value), r.Failure)
		}
	})
	s.wantValue(t, engine.Call{Code: s.Code.Two}, "2")
}

func (s CallSubject) badCalls(t *testing.T) {
	most := s.Caller.Bounds()
	for name, call := range map[string]engine.Call{
		"a language that there is not": {Language: "cobol", Code: s.Code.Two},
		"too much memory":              {Code: s.Code.Two, Limits: engine.CallLimits{MemoryBytes: most.Most.MemoryBytes + 1}},
		"too little memory":            {Code: s.Code.Two, Limits: engine.CallLimits{MemoryBytes: most.LeastMemory - 1}},
		"too much time":                {Code: s.Code.Two, Limits: engine.CallLimits{Time: most.Most.Time + 1}},
		"no time":                      {Code: s.Code.Two, Limits: engine.CallLimits{Time: -1}},
		"too long a life":              {Code: s.Code.Two, Limits: engine.CallLimits{Life: most.Most.Life + 1}},
		"too much output":              {Code: s.Code.Two, Limits: engine.CallLimits{OutputBytes: most.Most.OutputBytes + 1}},
		"too much code":                {Code: strings.Repeat(" ", most.Code+1)},
		"code that is no text":         {Code: s.Code.Two + "\xff"},
	} {
		if _, err := s.Caller.Call(t.Context(), call); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// nothingStays: what one call leaves, the next does not find. That it would be found in
// one place is shown first.
func (s CallSubject) nothingStays(t *testing.T) {
	s.wantValue(t, engine.Call{Code: s.Code.Both}, "true")
	for range 40 { // more than are kept ready
		if r := s.runCode(t, s.Code.Leaves); r.Failure != nil {
			t.Fatalf("%+v", r.Failure)
		}
		s.wantValue(t, engine.Call{Code: s.Code.Finds}, "false")
	}
}

func (s CallSubject) nothingIsReached(t *testing.T) {
	t.Setenv("COFFERDAM_TEST_REACHED", "reached")
	s.wantValue(t, engine.Call{Code: s.Code.Reaches}, "[]")
}

// told is what a tool was asked.
type told struct{ name, arguments string }

func (s CallSubject) testTools(t *testing.T) {
	var asked []told
	call := func(name, arguments string, reply engine.ToolReply) engine.Call {
		return engine.Call{Code: s.Code.Tool(name, arguments), Tool: func(_ context.Context, name, arguments string) engine.ToolReply {
			asked = append(asked, told{name, arguments})
			return reply
		}}
	}
	s.wantValue(t, call("add", `{"a":1,"b":[2,"\u0000\n€"]}`, engine.ToolReply{Result: `{"sum":3}`}), `{"sum":3}`)
	if len(asked) != 1 || asked[0].name != "add" || !sameJSON(asked[0].arguments, `{"a":1,"b":[2,"\u0000\n€"]}`) {
		t.Errorf("the tool was asked %q", asked)
	}
	for name, c := range map[string]engine.Call{
		"refused":    call("pay", `{}`, engine.ToolReply{Refusal: "the policy says no", Approval: "ap-1"}),
		"no JSON":    call("pay", `{}`, engine.ToolReply{Result: `{`}),
		"no answer":  call("pay", `{}`, engine.ToolReply{}),
		"no tools":   {Code: s.Code.Tool("pay", `{}`)},
		"too much":   call("pay", `{"a":"`+strings.Repeat("x", s.Caller.Bounds().Ask)+`"}`, engine.ToolReply{Result: "1"}),
		"not UTF-8?": call("pay", `{"a":"\ud800"}`, engine.ToolReply{Refusal: "what is that"}),
	} {
		if r := s.callCode(t, c); r.Failure != nil || !strings.HasPrefix(r.Value, `"`) {
			t.Errorf("%s: it came to %q, %+v; want the text of a refusal", name, r.Value, r.Failure)
		}
	}
	s.toolsTakeNoTime(t)
}

// toolsTakeNoTime: the time of a tool is not the code's, and its end is the call's.
func (s CallSubject) toolsTakeNoTime(t *testing.T) {
	t.Helper()
	limit := 300 * time.Millisecond
	slow := engine.Call{Code: s.Code.Tool("slow", `{}`), Limits: engine.CallLimits{Time: limit}}
	slow.Tool = func(ctx context.Context, _, _ string) engine.ToolReply {
		select {
		case <-time.After(2 * limit):
		case <-ctx.Done():
		}
		return engine.ToolReply{Result: "7"}
	}
	s.wantValue(t, slow, "7")
	slow.Limits.Life = limit
	s.wantFailure(t, slow, engine.FailTime)
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// testMany: calls run beside each other, and each gets its own value.
func (s CallSubject) testMany(t *testing.T) {
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			reply := fmt.Sprint(i)
			r, err := s.Caller.Call(t.Context(), engine.Call{
				Code: s.Code.Tool("own", `{}`),
				Tool: func(context.Context, string, string) engine.ToolReply { return engine.ToolReply{Result: reply} },
			})
			if err != nil || r.Value != reply {
				t.Errorf("call %d came to %q, %+v, %v", i, r.Value, r.Failure, err)
			}
		})
	}
	all.Wait()
}

// leaves: a call ends with whoever asked for it, computing or waiting.
func (s CallSubject) leaves(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var inside atomic.Bool
	_, err := s.Caller.Call(ctx, engine.Call{Code: s.Code.Tool("wait", `{}`), Tool: func(ctx context.Context, _, _ string) engine.ToolReply {
		inside.Store(true)
		cancel()
		<-ctx.Done()
		return engine.ToolReply{Result: "1"}
	}})
	if !errors.Is(err, context.Canceled) || !inside.Load() {
		t.Errorf("a call whose client left ended with %v, inside of the tool %t", err, inside.Load())
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Caller.Call(ctx, engine.Call{Code: s.Code.ForEver}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that computes, whose client left, ended with %v", err)
	}
	s.wantValue(t, engine.Call{Code: s.Code.Two}, "2")
}

// testClose: calls end with their engine, and none begins again.
func (s CallSubject) testClose(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := s.Caller.Call(context.Background(), engine.Call{Code: s.Code.Tool("wait", `{}`), Tool: func(ctx context.Context, _, _ string) engine.ToolReply {
			close(begun)
			<-ctx.Done()
			return engine.ToolReply{Result: "1"}
		}})
		ended <- err
	}()
	<-begun
	if err := s.Caller.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a call whose engine was closed ended with %v", err)
	}
	if _, err := s.Caller.Call(t.Context(), engine.Call{Code: s.Code.Two}); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a closed engine: %v", err)
	}
	if err := s.Caller.Close(t.Context()); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}
