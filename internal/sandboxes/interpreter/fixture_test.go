package interpreter

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
)

// script is what a pretended kernel does with a cell: it says lines as they are. The cell's
// code names it.
type script func(k *pretended, cell string, interrupted <-chan struct{})

// stage is a sandbox with pretended kernels.
type stage struct {
	t       *testing.T
	scripts map[string]script
	refuse  map[string]error // by code
	limit   func(context.Context) (context.Context, context.CancelFunc)
	slow    func() // is waited for before a kernel starts; nil: nothing is
	older   bool   // its kernels are an earlier release's, and say nothing when they are asked for cells

	mu      sync.Mutex // guards what follows
	kernels []*pretended
	begun   []commands.Cell
	ends    []channel.Exit
	fails   error // of the next start
}

// pretended is a kernel: what it writes is kept for one who attaches.
type pretended struct {
	keeper.Command

	stage *stage
	mu    sync.Mutex // guards what follows
	conn  *channel.Conn
	input *io.PipeWriter
	dead  bool
	strk  chan struct{}
	kept  [][]byte // said before anybody was attached
}

func newStage(t *testing.T, scripts map[string]script) (*Interpreter, *stage) {
	t.Helper()
	s := &stage{t: t, scripts: scripts, refuse: map[string]error{}}
	i := New(Config{MaxOutput: 2 << 20, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Host: func(id string) (Host, error) {
		if id != "box" {
			return nil, fault.New(fault.ErrNotFound, "there is no sandbox %q", id)
		}
		return s, nil
	}})
	return i, s
}

func (s *stage) StartKernel(_ context.Context, k commands.Kernel) (string, error) {
	if s.slow != nil {
		s.slow()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return "", s.fails
	}
	r, w := io.Pipe()
	one := &pretended{Command: keeper.Command{ID: fmt.Sprintf("krn-%d", len(s.kernels)+1), Argv: k.Argv}, stage: s, input: w, strk: make(chan struct{}, 8)}
	s.kernels = append(s.kernels, one)
	go one.run(bufio.NewReader(r))
	return one.ID, nil
}

// run takes the program, and then requests.
func (k *pretended) run(in *bufio.Reader) {
	length, err := in.ReadString('\n')
	if err != nil {
		return
	}
	var n int64
	if _, err := fmt.Sscan(length, &n); err != nil {
		k.stage.t.Error(err)
	}
	_, _ = io.CopyN(io.Discard, in, n)
	k.say(`{"kind":"ready"}`)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			k.stage.t.Errorf("the kernel was asked %q", line)
		}
		if r.Op == "idle" && !k.stage.older {
			k.say(`{"kind":"ready"}`)
		}
		if r.Op != "run" {
			continue
		}
		name, _, _ := strings.Cut(r.Code, " ")
		if do := k.stage.scripts[name]; do != nil {
			do(k, r.Cell, k.strk)
		}
	}
}

// say writes a line; %s is for the cell.
func (k *pretended) say(line string) { k.write(channel.FrameStdout, []byte(line+"\n")) }

func (k *pretended) write(kind channel.FrameType, data []byte) {
	for len(data) > 0 {
		part := data[:min(len(data), channel.MaxPayload)]
		data = data[len(part):]
		k.mu.Lock()
		conn := k.conn
		if conn == nil {
			k.kept = append(k.kept, part)
		}
		k.mu.Unlock()
		if conn != nil && conn.WriteFrame(kind, part) != nil {
			return
		}
	}
}

func (k *pretended) begin(cell string) { k.say(`{"kind":"begin","cell":"` + cell + `"}`) }
func (k *pretended) done(cell string)  { k.say(`{"kind":"done","cell":"` + cell + `","count":7}`) }

// die is the end of its process.
func (k *pretended) die(exit channel.Exit) {
	k.mu.Lock()
	conn, was := k.conn, k.dead
	k.dead = true
	k.mu.Unlock()
	if conn != nil && !was {
		_ = conn.WriteJSON(channel.FrameExit, exit)
	}
}

func (k *pretended) ended() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dead
}

func (s *stage) find(id string) *pretended {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kernels {
		if k.ID == id {
			return k
		}
	}
	return nil
}

func (s *stage) Kernels(context.Context) ([]keeper.Command, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []keeper.Command
	for _, k := range s.kernels {
		if !k.ended() {
			all = append(all, k.Command)
		}
	}
	return all, nil
}

func (s *stage) Attach(_ context.Context, kernel string, offset int64) (net.Conn, error) {
	k := s.find(kernel)
	if k == nil {
		return nil, fault.New(fault.ErrNotFound, "there is no kernel %q", kernel)
	}
	ours, theirs := net.Pipe()
	conn := channel.NewConn(theirs)
	k.mu.Lock()
	kept, dead := k.kept, k.dead
	k.kept = nil
	k.mu.Unlock()
	go func() {
		if offset == 0 {
			for _, part := range kept {
				_ = conn.WriteFrame(channel.FrameStdout, part)
			}
		}
		k.mu.Lock()
		k.conn = conn
		k.mu.Unlock()
		if dead {
			_ = conn.WriteJSON(channel.FrameExit, channel.Exit{Code: 1})
		}
		for {
			kind, payload, err := conn.ReadFrame()
			if err != nil {
				return
			}
			if kind == channel.FrameStdin {
				_, _ = k.input.Write(payload)
			}
		}
	}()
	return ours, nil
}

func (s *stage) Signal(ctx context.Context, kernel, name string) error {
	if k := s.find(kernel); k != nil && name == "INT" {
		select {
		case k.strk <- struct{}{}:
		case <-ctx.Done():
		}
	}
	if k := s.find(kernel); k != nil && name == "KILL" {
		k.mu.Lock()
		conn, was := k.conn, k.dead
		k.dead = true
		k.mu.Unlock()
		if conn != nil && !was {
			go func() { _ = conn.WriteJSON(channel.FrameExit, channel.Exit{Code: 137, Signal: "KILL"}) }() // somebody may read it
		}
		_ = k.input.Close()
	}
	return nil
}

func (s *stage) Cell(_ context.Context, c commands.Cell) (string, func(channel.Exit), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse[c.Code]; err != nil {
		return "", nil, err
	}
	s.begun = append(s.begun, c)
	return fmt.Sprintf("cell-%d", len(s.begun)), func(e channel.Exit) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ends = append(s.ends, e)
	}, nil
}

func (s *stage) Environment(context.Context) (map[string]string, error) {
	return map[string]string{"RUN": "r-1"}, nil
}

func (s *stage) Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.limit != nil {
		return s.limit(ctx)
	}
	return context.WithCancel(ctx)
}

// told is all that a cell tells.
type told struct {
	stdout, stderr string
	results        []*Result
	failure        *Failure
	count          *int64
}

func collect(c *Cell) told {
	var all told
	for e := range c.Events {
		all.stdout += e.Stdout
		all.stderr += e.Stderr
		if e.Result != nil {
			all.results = append(all.results, e.Result)
		}
		if e.Error != nil {
			all.failure = e.Error
		}
		if e.Count != nil {
			all.count = e.Count
		}
	}
	return all
}

func execute(t *testing.T, i *Interpreter, code string) told {
	t.Helper()
	c, err := i.Execute(t.Context(), "box", Request{Code: code, Home: "/home/user"})
	if err != nil {
		t.Fatal(err)
	}
	return collect(c)
}
