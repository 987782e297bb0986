package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// The files in testdata/protocol0 were recorded from the release before requests
// had a version: what its client sends for each verb, and the fields that its
// structures have. They never change. A daemon of that release meets keepers of
// this one after a way back, and its keepers meet daemons of this one after an
// upgrade.
const recorded = "testdata/protocol0"

// spoken is one connection of a client: its frames to the keeper.
type spoken struct {
	Verb   Verb              `json:"verb"`
	Frames []json.RawMessage `json:"frames"`
}

// fields lists the paths of all fields of a structure, as JSON has them.
func fields(t reflect.Type, path string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return []string{path}
	}
	var all []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		all = append(all, fields(field.Type, path+"."+name)...)
	}
	return all
}

// everyVerb asks a keeper for everything that a client can ask.
func everyVerb(ctx context.Context, c *Client) {
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	launch := Launch{
		ID: "box", Argv: []string{"/bin/starter", "run"}, Env: []string{"PATH=/bin"}, Dir: "/d", Log: "/d/log", Meta: json.RawMessage(`{"a":1}`),
		CgroupProcs: []string{"/sys/fs/cgroup/x/cgroup.procs"}, Reset: true,
	}
	options := ExecOptions{RingBytes: 1 << 20, CapBytes: 1 << 21, AwaitReader: true}
	_ = c.Ping(ctx)
	_, _ = c.Launch(ctx, launch)
	_, _ = c.Launch(ctx, Launch{ID: "plain", Argv: []string{"/bin/init"}, Attached: true})
	_ = trackSome(ctx, c)
	_ = c.SetMeta(ctx, "box", json.RawMessage(`{"b":2}`))
	_, _ = c.List(ctx)
	_, _ = c.Get(ctx, "box")
	_ = c.Signal(ctx, "box", 19)
	_ = c.Freeze(ctx, Freeze{ID: "box"})
	_ = c.Freeze(ctx, Freeze{
		ID: "box", Keep: true, Steps: [][]string{{"/bin/a", "b"}}, Undo: [][]string{{"/bin/c"}}, Env: []string{"X=1"}, Dir: "/d", Log: "/d/log",
	})
	_ = c.Thaw(ctx, launch)
	_ = c.Adopt(ctx, "box", Command{ID: "c", Argv: []string{"sleep", "1"}, PID: 4, Started: at, Offset: 9, Terminal: true, TimeoutMS: 7}, options)
	_ = c.Exec(ctx, "box", channel.Exec{ID: "c", Argv: []string{"true"}}, options)
	_, _ = c.Call(ctx, "box", channel.Call{Kind: channel.CallPing})
	if raw, _, err := c.Stream(ctx, "box", channel.Call{Kind: channel.CallDial, Port: 80}); err == nil {
		_ = raw.Close()
	}
	_ = c.Send(ctx, "box", "c", channel.FrameStdin, []byte("x"))
	if raw, err := c.Attach(ctx, "box", "c", FromNow); err == nil {
		_ = raw.Close()
	}
	_, _ = c.Wait(ctx, "box")
	_ = c.Kill(ctx, "box")
	_ = c.Forget(ctx, "box")
	_ = c.Shutdown(ctx)
}

// older is a keeper that tells nothing of itself, agrees to everything, and keeps
// what it hears.
type older struct {
	socket string
	mu     sync.Mutex // guards all
	all    []spoken
}

func listenAsOlder(t *testing.T) *older {
	t.Helper()
	dir, err := os.MkdirTemp("", "keeper") //nolint:usetesting // t.TempDir may be too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o := &older{socket: filepath.Join(dir, "k.sock")}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", o.socket)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { o.hear(raw) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return o
}

func (o *older) hear(raw net.Conn) {
	defer raw.Close()
	conn := channel.NewConn(raw)
	_, first, err := conn.ReadFrame()
	var req Request
	if err != nil || json.Unmarshal(first, &req) != nil {
		return
	}
	s := spoken{Verb: req.Verb, Frames: []json.RawMessage{bytes.Clone(first)}}
	switch req.Verb { //nolint:exhaustive // The others are one frame.
	case VerbCall, VerbStream, VerbExec, VerbSend:
		_, payload, err := conn.ReadFrame()
		if err != nil {
			return
		}
		if !json.Valid(payload) {
			payload, _ = json.Marshal(payload)
		}
		s.Frames = append(s.Frames, bytes.Clone(payload))
	}
	o.mu.Lock()
	o.all = append(o.all, s)
	o.mu.Unlock()
	_ = conn.WriteFrame(channel.FrameReply, []byte(`{"ok":true}`))
	if req.Verb == VerbCall || req.Verb == VerbStream {
		_ = conn.WriteFrame(channel.FrameReply, []byte(`{"ok":true}`))
	}
	_, _ = io.Copy(io.Discard, raw)
}

func (o *older) heard() []spoken {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}
