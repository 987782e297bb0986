package httpapi_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// guestFile makes the manager's files those of a guest that says ten bytes and sends the
// frames that it is given.
func (m *manager) guestFile(frames func(*channel.Conn)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.frames = frames
}

// OpenFile implements backend.Sandboxes.
func (m *manager) OpenFile(ctx context.Context, id string, f channel.File) (*channel.Conn, channel.FileInfo, error) {
	m.mu.Lock()
	frames := m.frames
	m.mu.Unlock()
	if frames == nil {
		return m.Life.OpenFile(ctx, id, f)
	}
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		frames(channel.NewConn(far))
	}()
	return channel.NewConn(near), channel.FileInfo{Path: f.Path, Kind: channel.KindFile, Size: 10 << m.growth}, nil
}

// TestAFileThatLies: a guest that sends less or more than it announced, or breaks off, has
// sent no file.
func TestAFileThatLies(t *testing.T) {
	t.Parallel()
	in := serve(t)
	box := in.create(in.host, api.CreateSandbox{})
	whole := func(n int) func(*channel.Conn) {
		return func(c *channel.Conn) {
			_ = c.WriteFrame(channel.FrameStdout, make([]byte, n))
			_ = c.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
		}
	}
	for name, c := range map[string]struct {
		frames func(*channel.Conn)
		whole  bool
	}{
		"whole":       {whole(10), true},
		"fewer bytes": {whole(9), false},
		"more bytes":  {whole(11), false},
		"an error":    {func(c *channel.Conn) { _ = c.WriteJSON(channel.FrameReply, channel.Reply{Error: "it went away"}) }, false},
		"garbage":     {func(c *channel.Conn) { _ = c.WriteFrame(channel.FrameResize, nil) }, false},
		"cut off":     {func(c *channel.Conn) { _ = c.WriteFrame(channel.FrameStdout, make([]byte, 10)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			in.manager.guestFile(c.frames)
			var got []byte
			body, err := in.host.ReadFile(t.Context(), box.ID, client.File{Path: "f"})
			if err == nil {
				got, err = io.ReadAll(body)
				body.Close()
				if body.Size != 10 {
					t.Errorf("its size is %d", body.Size)
				}
			}
			if (err == nil) != c.whole {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// TestHeadersOfAFileReadNothing: who asks for a file's headers alone has it not read, which would
// be on record as a read that broke off.
func TestHeadersOfAFileReadNothing(t *testing.T) {
	t.Parallel()
	in := serve(t)
	_, secret, err := in.book.Issue(t.Context(), token.Grant{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	c := in.with(secret)
	box := in.create(c, api.CreateSandbox{})
	if _, err := c.WriteFile(t.Context(), box.ID, client.File{Path: "f"}, strings.NewReader("content")); err != nil {
		t.Fatal(err)
	}
	path := "/v1/sandboxes/" + box.ID + "/files?path="
	read := in.get(path+"f", secret)
	var opened atomic.Int64
	in.manager.guestFile(func(c *channel.Conn) { opened.Add(1); _ = c.Close() })
	for name, want := range map[string]int{"f": http.StatusOK, "none": http.StatusNotFound} {
		before := opened.Load()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, in.url+path+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close()
		if want == http.StatusOK && (got.StatusCode != want || got.Header.Get("Content-Type") != read.Header.Get("Content-Type") || got.Header.Get(api.FileSizeHeader) != "7" || read.Header.Get(api.FileSizeHeader) != "7" || opened.Load() != before) {
			t.Errorf("%s: %s %v, opened %d times; with content %s %v", name, got.Status, got.Header, opened.Load(), read.Status, read.Header)
		}
		if want != http.StatusOK && opened.Load() == before {
			t.Errorf("%s was not opened, which says why it can't be read", name)
		}
	}
}

// TestAFileThatNobodyTakes: a client that takes nothing any more of a file, and stays, holds
// no stream of the guest's.
func TestAFileThatNobodyTakes(t *testing.T) {
	t.Parallel()
	in := serveWithin(t, 50*time.Millisecond)
	in.manager.growth = 40
	box := in.create(in.host, api.CreateSandbox{})
	ended := make(chan error, 1)
	endless := func(write func(c *channel.Conn) error) func(*channel.Conn) {
		return func(c *channel.Conn) {
			for {
				if err := write(c); err != nil {
					ended <- err
					return
				}
			}
		}
	}
	piece := make([]byte, 32<<10)
	in.manager.guestFile(endless(func(c *channel.Conn) error { return c.WriteFrame(channel.FrameStdout, piece) }))
	body, err := in.host.ReadFile(t.Context(), box.ID, client.File{Path: "f"})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	<-ended
	if _, err := io.Copy(io.Discard, body); err == nil {
		t.Error("what was broken off looks whole")
	}
}
