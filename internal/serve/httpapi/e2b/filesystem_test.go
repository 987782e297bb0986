package e2b

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

func TestFilesystemCalls(t *testing.T) {
	s := newDataStage(t)
	fs := filesystemService
	made := s.got(fs+"MakeDir", `{"path":"a/b"}`)["entry"].(map[string]any)
	if made["type"] != "FILE_TYPE_DIRECTORY" || made["path"] != "/home/user/a/b" || made["name"] != "b" || made["permissions"] != "drwxr-xr-x" {
		t.Errorf("made %v", made)
	}
	if status, body := s.ask(fs+"MakeDir", `{"path":"a/b"}`); status != http.StatusConflict || !strings.Contains(body, `"already_exists"`) {
		t.Errorf("%d %s", status, body)
	}
	s.post("/files?path=a/f", octetStream, strings.NewReader("text"))
	if err := os.Symlink("b", filepath.Join(s.box.Files.Root, "home/user/a/link")); err != nil {
		t.Fatal(err)
	}
	stat := s.got(fs+"Stat", `{"path":"~/a/f"}`)["entry"].(map[string]any)
	if stat["size"] != "4" || stat["mode"] != 420. || stat["owner"] != "user" || stat["type"] != "FILE_TYPE_FILE" {
		t.Errorf("stat %v", stat)
	}
	if _, err := time.Parse(time.RFC3339Nano, stat["modifiedTime"].(string)); err != nil {
		t.Error(err)
	}
	link := s.got(fs+"Stat", `{"path":"a/link"}`)["entry"].(map[string]any)
	if link["type"] != "FILE_TYPE_DIRECTORY" || link["symlinkTarget"] != "/home/user/a/b" || link["permissions"] != "Lrwxrwxrwx" {
		t.Errorf("a link %v", link)
	}
	for depth, want := range map[int]int{0: 1, 1: 1, 2: 4} {
		if got := s.got(fs+"ListDir", fmt.Sprintf(`{"path":"/home/user","depth":%d}`, depth))["entries"].([]any); len(got) != want {
			t.Errorf("depth %d: %v", depth, got)
		}
	}
	moved := s.got(fs+"Move", `{"source":"a/f","destination":"c/d/f"}`)["entry"].(map[string]any)
	if moved["path"] != "/home/user/c/d/f" {
		t.Errorf("moved %v", moved)
	}
	s.got(fs+"Remove", `{"path":"c"}`)
	s.got(fs+"Remove", `{"path":"c"}`)
	for call, c := range map[string]struct {
		body   string
		status int
	}{
		"Stat": {`{"path":"c"}`, 404}, "Move": {`{"source":"c","destination":"e"}`, 404}, "ListDir": {`{"path":"c"}`, 404},
		"Remove": {`{"path":""}`, 400}, "MakeDir": {`{"path":""}`, 400}, "CreateWatcher": {`{"path":"c"}`, 404},
		"GetWatcherEvents": {`{"watcherId":"00"}`, 404},
	} {
		if status, body := s.ask(fs+call, c.body); status != c.status {
			t.Errorf("%s: %d %s", call, status, body)
		}
	}
	if status, _ := s.ask(fs+"ListDir", `{"path":".","depth":5000}`); status != http.StatusBadRequest {
		t.Errorf("a deep list: %d", status)
	}
}

func TestWatchStream(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.got(filesystemService+"MakeDir", `{"path":"w"}`)
		e := s.open(filesystemService+"WatchDir", `{"path":"w","includeEntry":true}`)
		if m := e.next(); m.Start == nil {
			t.Fatalf("the first message is %+v", m)
		}
		s.post("/files?path=w/new", octetStream, strings.NewReader("x"))
		m := e.next()
		if m.Filesystem == nil || m.Filesystem.Name != "new" || m.Filesystem.Type != "EVENT_TYPE_CREATE" || m.Filesystem.Entry == nil || m.Filesystem.Entry.Path != "/home/user/w/new" {
			t.Errorf("the change is %+v", m.Filesystem)
		}
		if _, problem := s.open(filesystemService+"WatchDir", `{"path":"nowhere"}`).finish(); problem == nil || problem.Code != codeNotFound {
			t.Errorf("a watch of nothing: %v", problem)
		}
	})
}

func TestPolledWatcher(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.add("sb02")
		s.got(filesystemService+"MakeDir", `{"path":"w"}`)
		created := s.got(filesystemService+"CreateWatcher", `{"path":"w"}`)
		id, _ := created["watcherId"].(string)
		poll := fmt.Sprintf(`{"watcherId":%q}`, id)
		if got := s.got(filesystemService+"GetWatcherEvents", poll)["events"]; got == nil {
			t.Error("no list of events")
		}
		s.post("/files?path=w/new", octetStream, strings.NewReader("x"))
		var seen []any
		for len(seen) < 2 {
			seen = append(seen, s.got(filesystemService+"GetWatcherEvents", poll)["events"].([]any)...)
		}
		if first := seen[0].(map[string]any); first["name"] != "new" || first["type"] != "EVENT_TYPE_CREATE" {
			t.Errorf("the first change is %v", first)
		}
		r := s.request(http.MethodPost, filesystemService+"GetWatcherEvents", strings.NewReader(poll))
		r.Header.Set("Content-Type", typeUnary)
		r.Header.Set(headerSandbox, "sb02")
		r.Header.Set("X-Access-Token", "token-sb02")
		if status, body := s.do(r); status != http.StatusNotFound {
			t.Errorf("another sandbox's watcher: %d %s", status, body)
		}
		s.got(filesystemService+"RemoveWatcher", poll)
		if status, _ := s.ask(filesystemService+"GetWatcherEvents", poll); status != http.StatusNotFound {
			t.Errorf("a removed watcher: %d", status)
		}
		for range maxWatchers {
			s.got(filesystemService+"CreateWatcher", `{"path":"w"}`)
		}
		if status, _ := s.ask(filesystemService+"CreateWatcher", `{"path":"w"}`); status != http.StatusTooManyRequests {
			t.Errorf("one watcher too many: %d", status)
		}
	})
}

func TestWatchersKeepSoMuch(t *testing.T) {
	var all watchers
	w := watcher{room: t.Context()}
	all.keepEvents(&w, make([]watchEvent, maxWatcherEvents))
	if w.lost {
		t.Error("lost too early")
	}
	all.keepEvents(&w, make([]watchEvent, 1))
	if !w.lost || w.events != nil {
		t.Error("too many were kept")
	}
	w = watcher{room: t.Context()}
	all.keepEvents(&w, []watchEvent{{Name: strings.Repeat("x", maxWatcherBytes+1)}})
	if !w.lost {
		t.Error("too much was kept")
	}
	w = watcher{room: t.Context()}
	all.keepEvents(&w, []watchEvent{{Entry: &fileEntry{Metadata: map[string]string{"x": strings.Repeat("x", maxWatcherBytes)}}}})
	if !w.lost {
		t.Error("too much was kept of what an entry tells")
	}
}

func TestWatchersExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all watchers
		stopped := false
		w := &watcher{sandbox: boxID, room: t.Context(), stop: func() { stopped = true }}
		w.expiry = time.AfterFunc(watcherLife, func() { all.removeWatcher("id") })
		all.addWatcher("id", w)
		for range 3 {
			time.Sleep(watcherLife - time.Second)
			if _, err := all.pollEvents(boxID, "id"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(watcherLife + time.Second)
		if _, err := all.pollEvents(boxID, "id"); err == nil || !stopped {
			t.Errorf("a watcher that nobody asks for lives: %v", err)
		}
	})
}

// TestLinksThatLeadNowhere: a guest can make the host look a bounded number of
// times.
func TestLinksThatLeadNowhere(t *testing.T) {
	s := newDataStage(t)
	root := filepath.Join(s.box.Files.Root, "home/user")
	for name, to := range map[string]string{"loop1": "loop2", "loop2": "loop1", "gone": "nothing", "self": "self"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range s.got(filesystemService+"ListDir", `{"path":"."}`)["entries"].([]any) {
		if e.(map[string]any)["type"] != "FILE_TYPE_FILE" {
			t.Errorf("got %v", e)
		}
	}
}

func TestRepliesBecomeErrors(t *testing.T) {
	for c, want := range map[channel.ErrorCode]code{
		channel.CodeInvalid: codeInvalid, channel.CodeNotFound: codeNotFound, channel.CodeExists: codePrecondition,
		channel.CodePermission: codePermission, channel.CodeNoSpace: codeExhausted, "": codeUnavailable,
	} {
		if got := failureOf((&channel.Reply{Code: c, Error: "why"}).Err()); got.Code != want || !strings.Contains(got.Message, "why") {
			t.Errorf("%q became %+v", c, got)
		}
	}
	if got := restStatus((&channel.Reply{Code: channel.CodeNoSpace}).Err()); got != http.StatusInsufficientStorage {
		t.Errorf("a full disk is %d", got)
	}
}
