package templatebuild_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
)

// shop has a builder over pretended sandboxes, whose commands end as the test says.
type shop struct {
	*backendtest.Life

	t       *testing.T
	dir     string
	builder *templatebuild.Builder

	mu       sync.Mutex // guards what follows
	commands []sandbox.Command
	files    []channel.File
	written  map[string]string
	records  []admission.Build
	answer   func(c sandbox.Command) (exit channel.Exit, output string)
	hold     chan struct{}        // commands called "wait" end when it is closed
	unlogged templatebuild.Status // "" or a stage whose record can't be written
	keeping  error
	kept     func() // nil: nobody is told that a sandbox is being kept
	removing error
	elevated [][]string // commands that had rights
	revoked  chan struct{}
	system   system
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{Life: backendtest.NewLife(t.TempDir()), t: t, dir: t.TempDir(), written: map[string]string{}, hold: make(chan struct{}), revoked: make(chan struct{})}
	s.open()
	return s
}

// open begins a daemon's life; the one before ends.
func (s *shop) open() {
	s.t.Helper()
	if s.builder != nil {
		s.builder.Close()
	}
	var err error
	s.builder, err = templatebuild.Open(templatebuild.Config{Sandboxes: s, Recorder: s, Owed: s.owed, Distribution: s, Archive: s.archive, During: s.during, Dir: s.dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.builder.Close)
}

func (s *shop) during(ctx context.Context, _ string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := make(chan struct{})
	safego.Go(func() {
		select {
		case <-s.revoked:
			cancel()
		case <-stop:
		}
	})
	return ctx, sync.OnceFunc(func() { close(stop); cancel() })
}

// RecordBuild implements templatebuild.Recorder.
func (s *shop) RecordBuild(_ context.Context, _ string, b admission.Build) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(s.unlogged) == string(b.Stage) {
		return fault.New(fault.ErrUnavailable, "the log can't be written")
	}
	s.records = append(s.records, b)
	return nil
}

// owed reports whether a build has begun on record, and not ended.
func (s *shop) owed(_ context.Context, id string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	owed := false
	for _, r := range s.records {
		switch {
		case r.ID != id:
		case r.Stage == admission.BuildBegun:
			owed = true
		case r.Stage == admission.BuildReady, r.Stage == admission.BuildFailed:
			owed = false
		}
	}
	return owed, nil
}

// Start implements templatebuild.Sandboxes.
func (s *shop) Start(_ context.Context, _ string, c sandbox.Command) (keeper.Command, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(c.Judged, "forbidden") {
		return keeper.Command{}, fault.New(fault.ErrForbidden, "the policy forbids it")
	}
	s.commands = append(s.commands, c)
	return keeper.Command{ID: fmt.Sprintf("%s#%d", c.Argv[len(c.Argv)-1], len(s.commands)-1)}, nil
}

// Elevated implements templatebuild.Sandboxes.
func (s *shop) Elevated(_ context.Context, _ string, e sandbox.Elevated) (channel.Exit, error) {
	s.mu.Lock()
	s.elevated = append(s.elevated, e.Argv)
	s.mu.Unlock()
	exit, output := s.dpkg(sandbox.Command{Argv: e.Argv, Judged: e.Judged, User: "root with rights"})
	if exit.Code != 0 {
		_, err := io.WriteString(e.Stderr, output)
		return exit, err
	}
	_, err := io.WriteString(e.Stdout, output)
	return exit, err
}

// Attach implements templatebuild.Sandboxes.
func (s *shop) Attach(_ context.Context, _, command string, _ int64) (net.Conn, error) {
	s.mu.Lock()
	i, err := strconv.Atoi(command[strings.LastIndexByte(command, '#')+1:])
	if err != nil {
		s.t.Error(err)
	}
	c, answer := s.commands[i], s.answer
	s.mu.Unlock()
	near, far := net.Pipe()
	safego.Go(func() {
		defer far.Close()
		exit, output := channel.Exit{}, ""
		if answer != nil {
			exit, output = answer(c)
		}
		conn := channel.NewConn(far)
		if output != "" && conn.WriteFrame(channel.FrameStdout, []byte(output)) != nil {
			return
		}
		if strings.HasPrefix(command, "wait") {
			<-s.hold
		}
		data, _ := json.Marshal(exit)
		_ = conn.WriteFrame(channel.FrameExit, data)
	})
	return near, nil
}

// File implements templatebuild.Sandboxes.
func (s *shop) File(_ context.Context, _ string, f channel.File) (channel.FileInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, f)
	if f.Op == channel.FileRemove && s.removing != nil {
		return channel.FileInfo{}, s.removing
	}
	return channel.FileInfo{Kind: channel.KindDir}, nil
}

// OpenFile implements templatebuild.Sandboxes.
func (s *shop) OpenFile(_ context.Context, _ string, f channel.File) (*channel.Conn, channel.FileInfo, error) {
	near, far := net.Pipe()
	safego.Go(func() {
		defer far.Close()
		conn := channel.NewConn(far)
		var got []byte
		for {
			_, payload, err := conn.ReadFrame()
			if err != nil || len(payload) == 0 {
				break
			}
			got = append(got, payload...)
		}
		s.mu.Lock()
		s.written[f.Path] = string(got)
		s.mu.Unlock()
		data, _ := json.Marshal(channel.Reply{OK: true})
		_ = conn.WriteFrame(channel.FrameReply, data)
	})
	return channel.NewConn(near), channel.FileInfo{}, nil
}

// Keep implements templatebuild.Sandboxes.
func (s *shop) Keep(ctx context.Context, id string, keep sandbox.Keep) (sandbox.Snapshot, error) {
	s.mu.Lock()
	err, kept := s.keeping, s.kept
	s.mu.Unlock()
	if kept != nil {
		kept()
	}
	if err != nil {
		return sandbox.Snapshot{}, err
	}
	return s.Life.Keep(ctx, id, keep)
}

const (
	ann = "tok-ann"
	bob = "tok-bob"
	tpl = "tpl0"
)

func owner(token string) sandbox.Owner { return sandbox.Owner{Token: token} }

// begin announces a build of ann's.
func (s *shop) begin() templatebuild.Build {
	s.t.Helper()
	b, err := s.builder.Begin(owner(ann), tpl, "app", []string{"app", "app:v1"})
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// request is of the sandbox in which a build's steps are done.
func request(id string) sandbox.Request {
	return sandbox.Request{Owner: owner(ann), Account: sandbox.Account{Name: "user", Home: "/home/user"}, Labels: map[string]string{templatebuild.Label: id}}
}

func (s *shop) start(id string, r templatebuild.Recipe) {
	s.t.Helper()
	if err := s.builder.Start(tpl, id, request(id), "/home/user", r); err != nil {
		s.t.Fatal(err)
	}
}

// await waits until a build is at its end.
func (s *shop) await(id string) templatebuild.Build {
	s.t.Helper()
	for {
		if b, _ := s.look(id); b.Status == templatebuild.Ready || b.Status == templatebuild.Failed {
			return b
		}
		moment()
	}
}

// moment is between two looks at what is waited for.
func moment() { <-time.After(time.Millisecond) }

func (s *shop) look(id string) (templatebuild.Build, string) {
	s.t.Helper()
	b, entries, err := s.builder.Look(ann, tpl, id, 0, 1<<30)
	if err != nil {
		s.t.Fatal(err)
	}
	var text []string
	for _, e := range entries {
		text = append(text, e.Text)
	}
	return b, strings.Join(text, "\n")
}

// make builds a recipe to its end.
func (s *shop) make(r templatebuild.Recipe) (templatebuild.Build, string) {
	s.t.Helper()
	b := s.begin()
	s.start(b.ID, r)
	s.await(b.ID)
	return s.look(b.ID)
}

func runs(commands ...string) []templatebuild.Step {
	var all []templatebuild.Step
	for _, c := range commands {
		all = append(all, templatebuild.Step{Type: "RUN", Args: []string{c}})
	}
	return all
}

// nothingLeft: no sandbox, and snapshots with these ids only.
func (s *shop) nothingLeft(snapshots ...string) {
	s.t.Helper()
	if left := s.List(); len(left) != 0 {
		s.t.Errorf("%d sandboxes are left", len(left))
	}
	all, err := s.Snapshots(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var ids []string
	for _, k := range all {
		ids = append(ids, k.ID)
	}
	if !slices.Equal(ids, snapshots) {
		s.t.Errorf("snapshots %v are left, want %v", ids, snapshots)
	}
}
