package interpreter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// good says what it is told to, and ends.
func good(lines ...string) script {
	return func(k *pretended, cell string, _ <-chan struct{}) {
		k.begin(cell)
		for _, line := range lines {
			k.say(strings.ReplaceAll(line, "CELL", cell))
		}
		k.done(cell)
	}
}

func TestACell(t *testing.T) {
	t.Parallel()
	i, s := newStage(t, map[string]script{
		"say": good(`{"kind":"stdout","cell":"CELL","text":"hi\n"}`, `{"kind":"stderr","cell":"CELL","text":"oh"}`,
			`{"kind":"result","cell":"CELL","main":true,"data":{"text/plain":"'x'","image/png":"AAAA","image/jpeg":"not base64!","text/html":7,"application/json":{"a":[1]},"x/y":1}}`,
			`{"kind":"error","cell":"CELL","name":"ValueError","value":"bad","traceback":"at 1"}`),
	})
	got := execute(t, i, "say")
	if got.stdout != "hi\n" || got.stderr != "oh" || len(got.results) != 1 || got.count == nil || *got.count != 7 {
		t.Fatalf("%+v", got)
	}
	if r := got.results[0]; !r.Main || len(r.Formats) != 4 || r.Formats["image/jpeg"] != nil || r.Formats["text/html"] != nil || string(r.Formats["x/y"]) != "1" {
		t.Errorf("%v", r.Formats)
	}
	if got.failure == nil || *got.failure != (Failure{"ValueError", "bad", "at 1"}) {
		t.Errorf("%+v", got.failure)
	}
	if len(s.begun) != 1 || s.begun[0].Language != Python || len(s.ends) != 1 || s.ends[0].Code != 1 || s.ends[0].Error != "ValueError: bad" || s.ends[0].StdoutBytes != 3 {
		t.Errorf("on record are %+v and %+v", s.begun, s.ends)
	}
	if again := execute(t, i, "say"); again.count == nil || len(s.kernels) != 1 {
		t.Errorf("%+v with %d kernels", again, len(s.kernels))
	}
}

// TestARefusedCell: no kernel hears of what the policy refuses.
func TestARefusedCell(t *testing.T) {
	t.Parallel()
	i, s := newStage(t, map[string]script{"say": good()})
	s.refuse["say no"] = fault.New(fault.ErrForbidden, "rule x denies it")
	if _, err := i.Execute(t.Context(), "box", Request{Code: "say no"}); !errors.Is(err, fault.ErrForbidden) {
		t.Fatalf("got %v", err)
	}
	if len(s.kernels) != 0 || len(s.begun) != 0 {
		t.Errorf("%d kernels, %d cells", len(s.kernels), len(s.begun))
	}
	if got := execute(t, i, "say yes"); got.count == nil {
		t.Errorf("after it: %+v", got)
	}
}

// many are members of an object.
func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"a/%d":1`, i))
	}
	return strings.Join(all, ",")
}

// TestHostileKernels: what no kernel of ours says ends the kernel, and nothing else.
func TestHostileKernels(t *testing.T) {
	t.Parallel()
	flood := func(k *pretended, cell string, interrupted <-chan struct{}) {
		k.begin(cell)
		line := `{"kind":"stdout","cell":"` + cell + `","text":"` + strings.Repeat("x", 60_000) + `"}`
		for range (1 << 30) / len(line) { // a gigabyte, if nobody says stop
			select {
			case <-interrupted:
				k.done(cell)
				return
			default:
				k.say(line)
			}
		}
		k.stage.t.Error("a gigabyte was taken")
	}
	raw := func(lines ...string) script {
		return func(k *pretended, cell string, _ <-chan struct{}) {
			k.begin(cell)
			for _, line := range lines {
				k.say(strings.ReplaceAll(line, "CELL", cell))
			}
		}
	}
	for name, test := range map[string]struct {
		do   script
		want string // the failure's name
		says string
	}{
		"a gigabyte":            {flood, FailureOutput, "more than 2 MiB"},
		"no JSON":               {raw("what?"), FailureBroken, "no message"},
		"an unknown kind":       {raw(`{"kind":"ping","cell":"CELL"}`), FailureBroken, "unknown kind"},
		"an unknown field":      {raw(`{"kind":"done","cell":"CELL","more":1}`), FailureBroken, "no message"},
		"a field twice":         {raw(`{"kind":"done","cell":"CELL","kind":"done"}`), FailureBroken, "no message"},
		"no UTF-8":              {raw("{\"kind\":\"stdout\",\"cell\":\"CELL\",\"text\":\"\xff\"}"), FailureBroken, "no message"},
		"deeply nested":         {raw(`{"kind":"result","cell":"CELL","data":{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`), FailureBroken, "no message"},
		"a thousand formats":    {raw(`{"kind":"result","cell":"CELL","data":{` + many(2000) + `}}`), FailureBroken, "more than 1024 formats"},
		"formats in a list":     {raw(`{"kind":"result","cell":"CELL","data":["a"]}`), FailureBroken, "no message"},
		"a format twice":        {raw(`{"kind":"result","cell":"CELL","data":{"a":1,"a":2}}`), FailureBroken, "no message"},
		"a line without an end": {raw(strings.Repeat("x", maxLine+1)), FailureBroken, "too long"},
		"it dies": {func(k *pretended, cell string, _ <-chan struct{}) {
			k.begin(cell)
			k.die(channel.Exit{Code: 3, Error: "a\x1b[31m\nlie"})
		}, FailureDied, "exit code 3, a[31m lie"},
		"it dies before it begins": {func(k *pretended, _ string, _ <-chan struct{}) { k.die(channel.Exit{Code: 137, Signal: "KILL"}) }, FailureDied, "signal KILL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, s := newStage(t, map[string]script{"do": test.do, "say": good(`{"kind":"stdout","cell":"CELL","text":"fine"}`)})
			got := execute(t, i, "do")
			if got.failure == nil || got.failure.Name != test.want || !strings.Contains(got.failure.Value, test.says) {
				t.Errorf("got %+v, want %s: %s", got.failure, test.want, test.says)
			}
			if len(s.ends) != 1 || s.ends[0].Code == 0 {
				t.Errorf("on record is %+v", s.ends)
			}
			if after := execute(t, i, "say"); after.stdout != "fine" || after.failure != nil {
				t.Errorf("the next cell tells %+v", after)
			}
		})
	}
}

// TestAKernelThatSaysItsEnd gets no other cell, though it is there a while longer.
func TestAKernelThatSaysItsEnd(t *testing.T) {
	i, s := newStage(t, map[string]script{"end": func(k *pretended, cell string, _ <-chan struct{}) {
		k.begin(cell)
		k.say(`{"kind":"error","cell":"` + cell + `","name":"KernelDied","value":"the shell has ended"}`)
		k.done(cell)
	}, "go": func(k *pretended, cell string, _ <-chan struct{}) {
		k.begin(cell)
		k.done(cell)
	}})
	if got := execute(t, i, "go"); got.failure != nil {
		t.Fatal(got.failure)
	}
	if got := execute(t, i, "end"); got.failure == nil || got.failure.Value != "the shell has ended" {
		t.Errorf("its last cell ends with %+v", got.failure)
	}
	if got := execute(t, i, "go"); got.failure != nil || len(s.kernels) != 2 || !s.kernels[0].ended() {
		t.Errorf("the next cell ends with %+v, in one of %d kernels", got.failure, len(s.kernels))
	}
}

// TestWrongOrder: what an earlier cell left, and what is for no cell, is no part of this one.
func TestWrongOrder(t *testing.T) {
	t.Parallel()
	i, _ := newStage(t, map[string]script{
		"late": func(k *pretended, cell string, _ <-chan struct{}) {
			for _, line := range []string{"half of a line that began earlier", strings.Repeat("y", maxLine+10), `{"kind":"done","cell":"` + cell + `","count":1}`, `{"kind":"stdout","cell":"cell-0","text":"old"}`} {
				k.say(line)
			}
			k.begin(cell)
			for _, other := range []string{"stdout", "done", "error", "ready"} {
				k.say(`{"kind":"` + other + `","cell":"cell-0","text":"old"}`)
			}
			k.say(`{"kind":"stdout","cell":"` + cell + `","text":"mine"}`)
			end := `{"kind":"done","cell":"` + cell + `","count":7}` + "\n" + `{"kind":"stdout","cell":"` + cell + `","text":"after the end"}` + "\n"
			k.write(channel.FrameStdout, []byte(end)) // at once
		},
	})
	if got := execute(t, i, "late"); got.stdout != "mine" || got.failure != nil || got.count == nil {
		t.Errorf("%+v", got)
	}
}

// TestInterrupts: a client that goes away, and the policy's time, end a cell; one that goes
// on although it was interrupted loses its kernel.
func TestInterrupts(t *testing.T) {
	t.Parallel()
	waits := func(k *pretended, cell string, interrupted <-chan struct{}) {
		k.begin(cell)
		k.say(`{"kind":"stdout","cell":"` + cell + `","text":"here"}`)
		<-interrupted
		k.say(`{"kind":"error","cell":"` + cell + `","name":"KeyboardInterrupt","value":"","traceback":""}`)
		k.done(cell)
	}
	i, s := newStage(t, map[string]script{"wait": waits, "say": good()})
	c, err := i.Execute(t.Context(), "box", Request{Code: "wait"})
	if err != nil {
		t.Fatal(err)
	}
	<-c.Events
	c.Leave(false)
	if got := execute(t, i, "say"); got.count == nil || got.failure != nil || len(s.kernels) != 1 {
		t.Errorf("after the client left: %+v with %d kernels", got, len(s.kernels))
	}
	limited, over := context.WithCancelCause(t.Context())
	s.limit = func(context.Context) (context.Context, context.CancelFunc) { return limited, func() {} }
	if c, err = i.Execute(t.Context(), "box", Request{Code: "wait"}); err != nil {
		t.Fatal(err)
	}
	<-c.Events
	over(context.DeadlineExceeded)
	if got := collect(c); got.failure == nil || got.failure.Name != FailureTimeout || s.ends[len(s.ends)-1].Code != 1 || !s.ends[len(s.ends)-1].TimedOut {
		t.Errorf("after the policy's time: %+v, %+v", got, s.ends)
	}
}

// TestAnInterruptInVainUnread: the kernel of a cell that goes on though it was interrupted is
// ended, also while nobody reads what the cell says.
func TestAnInterruptInVainUnread(t *testing.T) {
	t.Parallel()
	said := make(chan struct{})
	i, s := newStage(t, map[string]script{"wait": func(k *pretended, cell string, interrupted <-chan struct{}) {
		k.begin(cell)
		k.say(`{"kind":"stdout","cell":"` + cell + `","text":"here"}`)
		close(said)
		<-interrupted // and it goes on
	}})
	limited, over := context.WithCancelCause(t.Context())
	s.limit = func(context.Context) (context.Context, context.CancelFunc) { return limited, func() {} }
	c, err := i.Execute(t.Context(), "box", Request{Code: "wait"})
	if err != nil {
		t.Fatal(err)
	}
	<-said
	over(context.DeadlineExceeded)
	for kernel := s.kernels[0]; !kernel.ended(); runtime.Gosched() {
		if t.Context().Err() != nil {
			t.Fatal("the kernel goes on for as long as nobody reads")
		}
	}
	if got := collect(c); got.stdout != "here" || got.failure == nil || got.failure.Name != FailureDied {
		t.Errorf("%+v", got)
	}
}

// TestTimeEndsUnread: a client that does not read holds the kernel back, and not the policy's
// time. Whether the time is over before somebody waits for the client is chance, so it is
// tried some times.
func TestTimeEndsUnread(t *testing.T) {
	t.Parallel()
	said, heard := make(chan struct{}), make(chan struct{})
	i, s := newStage(t, map[string]script{"wait": func(k *pretended, cell string, interrupted <-chan struct{}) {
		k.begin(cell)
		k.say(`{"kind":"stdout","cell":"` + cell + `","text":"here"}`)
		said <- struct{}{}
		<-interrupted
		heard <- struct{}{}
		k.done(cell)
	}})
	for range 20 {
		limited, over := context.WithCancelCause(t.Context())
		s.limit = func(context.Context) (context.Context, context.CancelFunc) { return limited, func() {} }
		c, err := i.Execute(t.Context(), "box", Request{Code: "wait"})
		if err != nil {
			t.Fatal(err)
		}
		<-said
		over(context.DeadlineExceeded)
		select {
		case <-heard:
		case <-time.After(time.Minute):
			t.Fatal("it goes on for as long as nobody reads")
		}
		if got := collect(c); got.stdout != "here" || got.failure == nil || got.failure.Name != FailureTimeout {
			t.Errorf("%+v", got)
		}
	}
}

// TestRemovedWhileItStarts: a context that is removed while its kernel starts has none, which
// nobody would end.
func TestRemovedWhileItStarts(t *testing.T) {
	t.Parallel()
	i, s := newStage(t, map[string]script{"say": good()})
	starting, may := make(chan struct{}), make(chan struct{})
	s.slow = func() { close(starting); <-may }
	failed := make(chan error, 1)
	go func() {
		_, err := i.Execute(t.Context(), "box", Request{Code: "say", Home: "/home/user"})
		failed <- err
	}()
	<-starting
	if err := i.Remove(t.Context(), "box", "default-python", "/home/user"); err != nil {
		t.Fatal(err)
	}
	close(may)
	if err := <-failed; !errors.Is(err, fault.ErrNotFound) {
		t.Error(err)
	}
	if left, err := s.Kernels(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("kernels that run: %v %v", left, err)
	}
	s.slow = nil
	if got := execute(t, i, "say"); got.count == nil { // the control
		t.Errorf("%+v", got)
	}
}

// TestACellGoesOn: whoever leaves it to go on has the next one wait for its end.
func TestACellGoesOn(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	i, s := newStage(t, map[string]script{"say": good(), "long": func(k *pretended, cell string, interrupted <-chan struct{}) {
		k.begin(cell)
		k.say(`{"kind":"stdout","cell":"` + cell + `","text":"1"}`)
		select {
		case <-release:
		case <-interrupted:
			k.stage.t.Error("it was interrupted")
		}
		k.say(`{"kind":"stdout","cell":"` + cell + `","text":"2"}`)
		k.done(cell)
	}})
	c, err := i.Execute(t.Context(), "box", Request{Code: "long"})
	if err != nil {
		t.Fatal(err)
	}
	<-c.Events
	c.Leave(true)
	ended := make(chan told)
	go func() {
		c, err := i.Execute(t.Context(), "box", Request{Code: "say"})
		if err != nil {
			t.Error(err)
			close(ended)
			return
		}
		ended <- collect(c)
	}()
	close(release)
	if got := <-ended; got.count == nil || len(s.kernels) != 1 || len(s.ends) != 2 || s.ends[0].Code != 0 {
		t.Errorf("%+v, %+v", got, s.ends)
	}
}

func TestContexts(t *testing.T) {
	t.Parallel()
	i, s := newStage(t, map[string]script{"say": good()})
	ctx := t.Context()
	list := func() string {
		t.Helper()
		all, err := i.Contexts(ctx, "box", "/home/user")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(all)
	}
	if got := list(); got != "[{default-python python /home/user} {default-javascript javascript /home/user}]" {
		t.Error(got)
	}
	made, err := i.Create(ctx, "box", NewContext{Language: "js", Dir: "/tmp"})
	if err != nil || made.Language != JavaScript || made.Dir != "/tmp" || !strings.HasSuffix(list(), fmt.Sprintf("%v]", made)) {
		t.Fatalf("%+v %v %s", made, err, list())
	}
	if err := i.Restart(ctx, "box", made.ID, "/home/user", nil); err != nil || len(s.kernels) != 2 || !s.kernels[0].ended() {
		t.Errorf("a restart: %v, %d kernels", err, len(s.kernels))
	}
	// Another daemon finds it by its kernel.
	other := New(i.cfg)
	if all, err := other.Contexts(ctx, "box", "/home/user"); err != nil || all[len(all)-1] != made {
		t.Errorf("another daemon finds %v, %v", all, err)
	}
	if err := i.Remove(ctx, "box", made.ID, "/home/user"); err != nil || strings.Contains(list(), made.ID) {
		t.Errorf("a removal: %v, %s", err, list())
	}
	for _, err := range []error{
		i.Remove(ctx, "box", made.ID, "/"), i.Restart(ctx, "box", "ctx-none", "/", nil), i.Restart(ctx, "none", "ctx-none", "/", nil),
	} {
		if !errors.Is(err, fault.ErrNotFound) {
			t.Errorf("of what is not there: %v", err)
		}
	}
	_, unknown := i.Execute(ctx, "box", Request{Code: "say", Context: made.ID})
	if !errors.Is(unknown, fault.ErrNotFound) {
		t.Errorf("a cell for a context that was removed: %v", unknown)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	i, s := newStage(t, map[string]script{"say": good()})
	ctx := t.Context()
	many := map[string]string{}
	for n := range 1_001 {
		many[fmt.Sprint("V", n)] = "x"
	}
	for name, r := range map[string]Request{
		"a long cell":            {Code: strings.Repeat("x", MaxCode+1)},
		"a zero byte":            {Code: "a\x00b"},
		"a language and context": {Code: "say", Context: "default-python", Language: "python"},
		"no such language":       {Code: "say", Language: "cobol"},
		"many variables":         {Code: "say", Env: many},
		"no name":                {Code: "say", Env: map[string]string{"": "x"}},
	} {
		if _, err := i.Execute(ctx, "box", r); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, n := range map[string]NewContext{
		"no path": {Dir: "tmp"}, "a long path": {Dir: "/" + strings.Repeat("x", maxDir)}, "no such language": {Dir: "/", Language: "cobol"}, "a zero byte": {Dir: "/\x00"},
	} {
		if _, err := i.Create(ctx, "box", n); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("a context with %s: %v", name, err)
		}
	}
	if len(s.begun) != 0 || len(s.kernels) != 0 {
		t.Errorf("%d cells, %d kernels", len(s.begun), len(s.kernels))
	}
	for range maxContexts {
		if _, err := i.Create(ctx, "box", NewContext{Dir: "/"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := i.Create(ctx, "box", NewContext{Dir: "/"}); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("one context too many: %v", err)
	}
	s.fails = fault.New(fault.ErrUnavailable, "no room")
	if err := i.Restart(ctx, "box", s.kernels[0].Argv[len(s.kernels[0].Argv)-3], "/", nil); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a kernel that can't be started: %v", err)
	}
}

// TestWaiting: so many cells wait for their turn, and no more.
func TestWaiting(t *testing.T) {
	t.Parallel()
	p := newKernelContext(Context{ID: "ctx-1"}, language{})
	if err := p.takeTurn(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range maxWaiting {
		all.Go(func() {
			if err := p.takeTurn(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("one that waited: %v", err)
			}
		})
	}
	waiting := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.waiting
	}
	for waiting() < maxWaiting {
		runtime.Gosched()
	}
	if err := p.takeTurn(t.Context()); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("one too many: %v", err)
	}
	cancel()
	all.Wait()
	if n := waiting(); n != 0 {
		t.Errorf("%d wait still", n)
	}
}

// TestRoom: a message for which there is no room ends its kernel, and room is given back.
func TestRoom(t *testing.T) {
	t.Parallel()
	big := `{"kind":"stdout","cell":"CELL","text":"` + strings.Repeat("z", 1<<19) + `"}`
	i, _ := newStage(t, map[string]script{"big": good(big, big), "say": good()})
	held, most := 0, 1<<20
	run := func() told {
		t.Helper()
		c, err := i.Execute(t.Context(), "box", Request{Code: "big", Take: func(n int) error {
			if held += n; held > most {
				return fault.New(fault.ErrExhausted, "no room")
			}
			return nil
		}, Give: func() { held = 0 }})
		if err != nil {
			t.Fatal(err)
		}
		return collect(c)
	}
	if got := run(); len(got.stdout) != 1<<20 || got.failure != nil || held != 0 {
		t.Errorf("%d bytes, %+v; %d are held", len(got.stdout), got.failure, held)
	}
	most = 1 << 18
	if got := run(); got.failure == nil || got.failure.Name != FailureBroken || !strings.Contains(got.failure.Value, "no room") {
		t.Errorf("%+v", got.failure)
	}
}
