package e2b

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
)

// heapNow is what this process has in memory, of its heap.
func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// formOf begins a form of one file whose part has a header of so many bytes; the header has no end.
func (s *dataStage) formOf(header int) (accepted int, refused *httptest.ResponseRecorder) {
	s.t.Helper()
	body, sender := io.Pipe()
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, "/files?path=f", body)
	r.Header.Set(headerSandbox, boxID)
	r.Header.Set(headerPort, strconv.Itoa(dataPort))
	r.Header.Set("X-Access-Token", "token-"+boxID)
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	w := httptest.NewRecorder()
	go func() {
		s.data.ServeHTTP(w, r)
		_ = body.CloseWithError(io.ErrClosedPipe) // as the server does when the handler has answered
	}()
	s.t.Cleanup(func() { _ = sender.CloseWithError(io.ErrUnexpectedEOF) })
	if _, err := io.WriteString(sender, "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\nX-Much: "); err != nil {
		return 0, w
	}
	piece := bytes.Repeat([]byte("a"), 64<<10)
	for accepted < header {
		if _, err := sender.Write(piece); err != nil {
			return accepted, w
		}
		accepted += len(piece)
	}
	return accepted, nil
}

// TestFormsOfOneTokenTakeRoom: the headers of a form's parts are kept in memory until they are whole,
// so they take room as everything does that a request brings: of one token no more than it may hold.
func TestFormsOfOneTokenTakeRoom(t *testing.T) {
	s := newDataStage(t)
	// The control: a form with a small header is taken.
	r := s.request(http.MethodPost, "/files?path=control", strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\nX-Much: little\r\n\r\ncontent\r\n--b--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	if status, body := s.do(r); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	const forms, header = 16, 9 << 20
	before := heapNow()
	var all sync.WaitGroup
	var held atomic.Int64
	for range forms {
		all.Go(func() {
			accepted, refused := s.formOf(header)
			if refused == nil {
				held.Add(int64(accepted))
			}
		})
	}
	all.Wait()
	grown := heapNow() - before
	t.Logf("%d MiB of headers were taken, and the heap is larger by %d MiB", held.Load()>>20, grown>>20)
	if held.Load() > backend.RoomEach || grown > 2*backend.RoomEach {
		t.Errorf("one sandbox's client has the daemon hold %d MiB of headers of parts (%d MiB of heap) in %d requests; its room is %d MiB", held.Load()>>20, grown>>20, forms, backend.RoomEach>>20)
	}
}

// lavish is a box whose agent tells of much: a watch has one frame with as many changes as it takes, and
// each file that it is asked about has as much metadata as it may.
type lavish struct {
	*backendtest.Boxes

	changes int
	asked   atomic.Int64
	before  int64
	peak    atomic.Int64
}

func (l *lavish) File(ctx context.Context, id string, f channel.File) (channel.FileInfo, error) {
	if f.Op != channel.FileStat {
		return l.Boxes.File(ctx, id, f)
	}
	if n := l.asked.Add(1); n%256 == 0 {
		l.peak.Store(max(l.peak.Load(), heapNow()-l.before))
	}
	metadata := map[string]string{}
	for i := range 40 { // of the 64 of 4 KiB that are believed: a reply has 256 KiB
		metadata[fmt.Sprintf("e2b.%02d", i)] = strings.Repeat("m", 4<<10)
	}
	return channel.FileInfo{Path: "/home/user/w/f", Kind: channel.KindFile, Owner: "user", Group: "user", Metadata: metadata}, nil
}

func (l *lavish) OpenFile(ctx context.Context, id string, f channel.File) (*channel.Conn, channel.FileInfo, error) {
	if f.Op != channel.FileWatch {
		return l.Boxes.OpenFile(ctx, id, f)
	}
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		var events channel.FileEvents
		for range l.changes {
			events.Events = append(events.Events, channel.FileEvent{Name: "f", Change: channel.ChangeWrite})
		}
		guest := channel.NewConn(far)
		if err := guest.WriteJSON(channel.FrameEvent, events); err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, far) // until the host wants no more
	}()
	return channel.NewConn(near), channel.FileInfo{Path: "/home/user/w", Kind: channel.KindDir}, nil
}

// TestEntriesOfAWatchAreBounded: what a watcher keeps is bounded, and so is what it has in memory before
// it finds that this is too much.
func TestEntriesOfAWatchAreBounded(t *testing.T) {
	for _, control := range []bool{true, false} {
		s := newDataStage(t)
		box := &lavish{Boxes: s.boxes, changes: 1_500}
		if control {
			box.changes = 3
		}
		s.data.cfg.Sandboxes = box
		box.before = heapNow()
		created := s.got(filesystemService+"CreateWatcher", `{"path":"w","includeEntry":true}`)
		poll := fmt.Sprintf(`{"watcherId":%q}`, created["watcherId"])
		for told := false; !told; {
			status, body := s.ask(filesystemService+"GetWatcherEvents", poll)
			told = status != http.StatusOK || strings.Contains(body, "EVENT_TYPE_WRITE")
			if control && told && status != http.StatusOK {
				t.Fatalf("%d %.200s", status, body)
			}
		}
		if control {
			continue
		}
		t.Logf("the agent was asked about %d files of %d KiB, and the heap was larger by %d MiB", box.asked.Load(), 160, box.peak.Load()>>20)
		if most := int64(2 * maxWatchedBytes); box.peak.Load() > most {
			t.Errorf("one watcher of one sandbox had %d MiB in memory; all of them may keep %d MiB", box.peak.Load()>>20, maxWatchedBytes>>20)
		}
	}
}

// TestMessagesTakeWhatTheyBecome: a message of many small parts takes what these do once they are decoded,
// in either form; a long text of as many bytes is taken.
func TestMessagesTakeWhatTheyBecome(t *testing.T) {
	s := newDataStage(t)
	const bytes = 1 << 20
	for name, message := range map[string]string{
		"members that nobody knows": `{"path":"x","more":[` + strings.Repeat(`{},`, bytes/3) + `{}]}`,
		"a long text":               `{"path":"` + strings.Repeat("x", bytes) + `"}`,
	} {
		status, body := s.ask(filesystemService+"Stat", message)
		if refused := strings.Contains(body, "resource_exhausted"); refused == (name == "a long text") {
			t.Errorf("%s: %d %.200s", name, status, body)
		}
	}
	of := newCodecs()[processService+"Start"].in
	words := append([]byte{0x0a, 0x80, 0x80, 0x40}, []byte(strings.Repeat("\x12\x00", bytes/2))...) // process, with empty args
	if size := decodedSize(words, of, 0); size < perField*bytes/2 {
		t.Errorf("a binary message of half a million empty words takes %d bytes", size)
	}
	text := append([]byte{0x0a, 0x84, 0x80, 0x40, 0x0a, 0x80, 0x80, 0x40}, []byte(strings.Repeat("x", bytes))...) // process, with a long cmd
	if size := decodedSize(text, of, 0); size > 3*bytes {
		t.Errorf("a binary message with a long text takes %d bytes", size)
	}
}
