package e2b

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// longList is a guest's list of links whose names and targets have so many letters;
// it counts the bytes that were taken of it.
func longList(wrote *atomic.Int64, entries, letters int) func(*channel.Conn) {
	long := strings.Repeat("x", letters)
	return func(c *channel.Conn) {
		// A part is one frame.
		part := channel.FileEntries{Entries: make([]channel.FileInfo, 20_000/(letters+100))}
		for i := range part.Entries {
			part.Entries[i] = channel.FileInfo{Path: "/home/user/" + long, Kind: channel.KindSymlink, Target: long}
		}
		for added := 0; added < entries; added += len(part.Entries) {
			if c.WriteJSON(channel.FrameEvent, part) != nil {
				return
			}
			wrote.Add(int64(len(part.Entries) * 2 * len(long)))
		}
		_ = c.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
	}
}

// TestALongListIsNotHeld: a list goes to its client as it comes, and waits inside of
// the sandbox for one that does not read.
func TestALongListIsNotHeld(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		var wrote atomic.Int64
		s.data.cfg.Sandboxes = &liar{s.boxes, longList(&wrote, 99_000, 4000)}
		r := s.request(http.MethodPost, filesystemService+"ListDir", strings.NewReader(`{"path":"."}`))
		r.Header.Set("Content-Type", typeUnary)
		res, err := s.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		last := int64(-1)
		for still := 0; still < 20; { // until nothing moves any more
			now := wrote.Load()
			if now > 64<<20 {
				t.Fatalf("%d bytes were taken from the guest, and none was read", now)
			}
			if still++; now != last {
				last, still = now, 0
			}
			time.Sleep(10 * time.Millisecond)
		}
		if last == 0 {
			t.Error("nothing came")
		}
	})
}

// TestALongListIsWhole: what comes in parts is one message; one that breaks off is none.
func TestALongListIsWhole(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		var wrote atomic.Int64
		s.data.cfg.Sandboxes = &liar{s.boxes, longList(&wrote, 1000, 4000)}
		if all := s.got(filesystemService+"ListDir", `{"path":"."}`)["entries"].([]any); len(all) != 1000 {
			t.Errorf("%d entries", len(all))
		}
		s.data.cfg.Sandboxes = &liar{s.boxes, longList(&wrote, channel.MaxListEntries+5, 40)}
		r := s.request(http.MethodPost, filesystemService+"ListDir", strings.NewReader(`{"path":"."}`))
		r.Header.Set("Content-Type", typeUnary)
		res, err := s.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if n, err := io.Copy(io.Discard, res.Body); err == nil {
			t.Errorf("a list with too many entries came to a good end after %d bytes", n)
		}
		s.data.cfg.Sandboxes = &liar{s.boxes, func(c *channel.Conn) {
			_ = c.WriteJSON(channel.FrameReply, channel.Reply{Code: channel.CodeInvalid, Error: "too many"})
		}}
		if status, body := s.ask(filesystemService+"ListDir", `{"path":"."}`); status != http.StatusBadRequest || !strings.Contains(body, "too many") {
			t.Errorf("a list that fails at once: %d %s", status, body)
		}
	})
}

// TestWatchersOfASandboxShare: many watchers keep no more than a few.
func TestWatchersOfASandboxShare(t *testing.T) {
	var all watchers
	big := []watchEvent{{Name: strings.Repeat("x", maxWatcherBytes/2)}}
	kept := 0
	for i := range maxWatchers {
		w := &watcher{sandbox: boxID, room: t.Context()}
		all.addWatcher(string(rune('a'+i)), w)
		all.keepEvents(w, big)
		kept += w.bytes
	}
	if kept > maxWatchedBytes || kept == 0 {
		t.Errorf("%d bytes are kept", kept)
	}
	other := &watcher{sandbox: "sb02", room: t.Context()}
	all.addWatcher("other", other)
	if all.keepEvents(other, big); other.lost {
		t.Error("another sandbox's watcher lost its events")
	}
}

// TestWatchersOfATokenShare: what the watchers of all its sandboxes keep is the token's room, and is
// given back when it is read.
func TestWatchersOfATokenShare(t *testing.T) {
	var all watchers
	room := backend.NewRoom()
	big := []watchEvent{{Name: strings.Repeat("x", maxWatcherBytes/2)}}
	fill := func(owner string, most int) (kept int) {
		for i := range most {
			within, leave := room.Enter(t.Context(), owner)
			id := fmt.Sprint(owner, i)
			w := &watcher{sandbox: id, room: within, stop: leave, expiry: time.NewTimer(time.Hour)}
			if !all.addWatcher(id, w) {
				t.Fatal("it is one too many")
			}
			all.keepEvents(w, big)
			kept += w.bytes
		}
		return kept
	}
	if kept := fill("ann", 100); kept > backend.RoomEach || kept < backend.RoomEach/2 {
		t.Errorf("a token's keep %d bytes", kept)
	}
	if kept := fill("bob", 2); kept < maxWatcherBytes {
		t.Errorf("another's keep %d bytes", kept)
	}
	for i := range 100 {
		_, _ = all.pollEvents(fmt.Sprint("ann", i), fmt.Sprint("ann", i)) // some have lost theirs
		if i%2 == 0 {
			all.removeWatcher(fmt.Sprint("ann", i))
		}
	}
	within, leave := room.Enter(t.Context(), "ann")
	defer leave()
	if err := backend.Take(within, backend.RoomEach); err != nil {
		t.Errorf("after all was read: %v", err)
	}
}

// TestWatchersAreCountedBeforeTheyOpen: of many that are asked for at once no more are made than
// one sandbox may have.
func TestWatchersAreCountedBeforeTheyOpen(t *testing.T) {
	s := newDataStage(t)
	s.got(filesystemService+"MakeDir", `{"path":"w"}`)
	var made, refused atomic.Int64
	var all sync.WaitGroup
	for range 3 * maxWatchers {
		all.Go(func() {
			switch status, body := s.ask(filesystemService+"CreateWatcher", `{"path":"w"}`); status {
			case http.StatusOK:
				made.Add(1)
			case http.StatusTooManyRequests:
				refused.Add(1)
			default:
				t.Errorf("%d %s", status, body)
			}
		})
	}
	all.Wait()
	if made.Load() != maxWatchers || refused.Load() != 2*maxWatchers {
		t.Errorf("%d were made and %d refused", made.Load(), refused.Load())
	}
}
