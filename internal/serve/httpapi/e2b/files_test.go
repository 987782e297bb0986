package e2b

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
)

// file reads a file of the box from behind.
func (s *dataStage) file(name string) string {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(s.box.Files.Root, name))
	if err != nil {
		return err.Error()
	}
	return string(content)
}

func (s *dataStage) post(path, contentType string, body io.Reader, headers ...string) (status int, answer string) {
	s.t.Helper()
	r := s.request(http.MethodPost, path, body)
	r.Header.Set("Content-Type", contentType)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return s.do(r)
}

const octetStream = "application/octet-stream"

func zipped(text string) *bytes.Buffer {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return &b
}

func form(names ...string) (body *bytes.Buffer, contentType string) {
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for _, name := range names {
		header := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="` + name + `"`}}
		part, _ := w.CreatePart(header)
		_, _ = io.WriteString(part, "content of "+name)
	}
	_ = w.Close()
	return body, w.FormDataContentType()
}

func TestUploads(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		status, body := s.post("/files?path=a/b.txt", octetStream, strings.NewReader("plain"))
		if want := `[{"name":"b.txt","type":"file","path":"/home/user/a/b.txt"}]`; status != 200 || strings.TrimSpace(body) != want {
			t.Errorf("%d %s", status, body)
		}
		status, body = s.post("/files?path=z", octetStream, zipped("unzipped"), "Content-Encoding", "gzip", "X-Metadata-Color", "blue")
		if status != 200 || !strings.Contains(body, `"metadata":{"color":"blue"}`) || s.file("home/user/z") != "unzipped" {
			t.Errorf("%d %s %q", status, body, s.file("home/user/z"))
		}
		content, contentType := form("/tmp/x/1", "2 é.txt")
		if status, body = s.post("/files", contentType, content); status != 200 || s.file("tmp/x/1") != "content of /tmp/x/1" || s.file("home/user/2 é.txt") != "content of 2 é.txt" {
			t.Errorf("%d %s", status, body)
		}
		content, contentType = form("whatever")
		if status, body = s.post("/files?path=named", contentType, content); status != 200 || s.file("home/user/named") != "content of whatever" {
			t.Errorf("%d %s", status, body)
		}
		if status, body = s.post("/files?path=empty", octetStream, nil); status != 200 || s.file("home/user/empty") != "" {
			t.Errorf("%d %s", status, body)
		}
	})
}

// TestWritesWhereOnlyRootMay: what a client puts at an absolute path is there, and its
// user's, as the clients of this wire expect; a relative path stays below the home.
func TestWritesWhereOnlyRootMay(t *testing.T) {
	s := newDataStage(t)
	s.box.Files.Closed = "/top"
	if status, body := s.post("/files?path=/top/a/f", octetStream, strings.NewReader("x")); status != 200 || s.file("top/a/f") != "x" {
		t.Errorf("%d %s", status, body)
	}
	if made := s.got(filesystemService+"MakeDir", `{"path":"/top/d"}`)["entry"].(map[string]any); made["path"] != "/top/d" {
		t.Errorf("%v", made)
	}
	if status, body := s.post("/files?path=/top/r&username=root", octetStream, strings.NewReader("x")); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if got := s.box.Files.Given; !slices.Equal(got, []string{"/top/a/f", "/top/d"}) {
		t.Errorf("given are %v", got)
	}
	s.box.Files.Closed = "/home/user/shut"
	if status, body := s.post("/files?path=shut/f", octetStream, strings.NewReader("x")); status != http.StatusForbidden {
		t.Errorf("%d %s", status, body)
	}
}

func TestUploadsThatAreRefused(t *testing.T) {
	s := newDataStage(t)
	two, twoType := form("1", "2")
	none, noneType := form()
	cut, cutType := form("cut")
	cut.Truncate(cut.Len() - 10)
	for name, c := range map[string]struct {
		query, contentType string
		body               io.Reader
		header             []string
		status             int
	}{
		"no path":            {"", octetStream, strings.NewReader("x"), nil, 400},
		"no type":            {"?path=f", "", strings.NewReader("x"), nil, 400},
		"another type":       {"?path=f", "text/plain", strings.NewReader("x"), nil, 400},
		"two for one path":   {"?path=first", twoType, two, nil, 400}, // the first is there by then
		"a form of nothing":  {"", noneType, none, nil, 400},
		"a form cut off":     {"?path=f", cutType, cut, nil, 400},
		"no gzip":            {"?path=f", octetStream, strings.NewReader("x"), []string{"Content-Encoding", "gzip"}, 400},
		"gzip cut off":       {"?path=f", octetStream, io.LimitReader(zipped(strings.Repeat("xyz", 9000)), 40), []string{"Content-Encoding", "gzip"}, 400},
		"another packing":    {"?path=f", octetStream, strings.NewReader("x"), []string{"Content-Encoding", "br"}, 400},
		"a bomb":             {"?path=f", octetStream, zipped(strings.Repeat("\x00", 2<<20)), []string{"Content-Encoding", "gzip"}, 507},
		"larger than a disk": {"?path=f", octetStream, strings.NewReader(strings.Repeat("x", 1<<20+1)), nil, 507},
		"another user":       {"?path=f&username=nobody", octetStream, strings.NewReader("x"), nil, 401},
		"a directory":        {"?path=/home/user", octetStream, strings.NewReader("x"), nil, 400},
		"long metadata":      {"?path=f", octetStream, strings.NewReader("x"), []string{"X-Metadata-A", strings.Repeat("x", 2000)}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			if status, body := s.post("/files"+c.query, c.contentType, c.body, c.header...); status != c.status {
				t.Errorf("%d %s", status, body)
			}
			if got := s.file("home/user/f"); !strings.Contains(got, "no such file") {
				t.Errorf("something was written: %.40q", got)
			}
		})
	}
}

// TestAFullDisk: the guest says so in the middle, and what it says is told.
func TestAFullDisk(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.box.Files.Full = 100_000
		status, body := s.post("/files?path=f", octetStream, strings.NewReader(strings.Repeat("x", 1<<20)))
		if status != http.StatusInsufficientStorage || !strings.Contains(body, "the disk is full") {
			t.Errorf("%d %s", status, body)
		}
	})
}

// TestABrokenUploadLeavesTheOldFile: a client that goes away in the middle.
func TestABrokenUploadLeavesTheOldFile(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.post("/files?path=f", octetStream, strings.NewReader("old"))
		ctx, cancel := context.WithCancel(t.Context())
		content, writer := io.Pipe()
		r := s.request(http.MethodPost, "/files?path=f", content).WithContext(ctx)
		r.Header.Set("Content-Type", octetStream)
		answered := make(chan error, 1)
		go func() {
			res, err := s.server.Client().Do(r)
			if err == nil {
				res.Body.Close()
				err = errors.New("it was answered: " + res.Status)
			}
			answered <- err
		}()
		if _, err := writer.Write(bytes.Repeat([]byte("new"), 50_000)); err != nil {
			t.Fatal(err)
		}
		cancel()
		_ = writer.CloseWithError(context.Canceled) // net/http's client waits for who reads its body
		if err := <-answered; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		s.server.Close() // when all handlers have returned
		if got := s.file("home/user/f"); got != "old" {
			t.Errorf("the file is %.20q", got)
		}
	})
}

func TestDownloads(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		large := strings.Repeat("0123456789", 30_000)
		s.post("/files?path=large", octetStream, strings.NewReader(large))
		s.post("/files?path=empty", octetStream, nil)
		for name, c := range map[string]struct {
			query, encoding string
			status          int
			body            string
		}{
			"a file":              {"?path=large", "identity", 200, large},
			"by habit":            {"?path=large", "gzip, deflate", 200, large},
			"an empty one":        {"?path=empty", "gzip", 200, ""},
			"absolute":            {"?path=/home/user/large", "identity", 200, large},
			"none":                {"?path=nothing", "identity", 404, ""},
			"a directory":         {"?path=.", "identity", 400, ""},
			"no path":             {"", "identity", 400, ""},
			"another user's":      {"?path=large&username=nobody", "identity", 401, ""},
			"the same by default": {"?path=large&username=user", "identity", 200, large},
		} {
			t.Run(name, func(t *testing.T) {
				r := s.request(http.MethodGet, "/files"+c.query, nil)
				r.Header.Set("Accept-Encoding", c.encoding)
				status, body := s.do(r)
				if status != c.status || c.status == 200 && body != c.body {
					t.Errorf("%d %.100s", status, body)
				}
			})
		}
		r := s.request(http.MethodGet, "/files?path=large", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		res, err := s.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		unzipped, err := gzip.NewReader(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(unzipped); err != nil || string(got) != large {
			t.Errorf("%v, %d bytes", err, len(got))
		}
	})
}

// opened counts the files that are opened.
type opened struct {
	*backendtest.Boxes
	count int
}

func (o *opened) OpenFile(ctx context.Context, id string, f channel.File) (*channel.Conn, channel.FileInfo, error) {
	o.count++
	return o.Boxes.OpenFile(ctx, id, f)
}

// TestHeadersOfAFileReadNothing: who asks for a file's headers alone has it not read, which would
// be on record as a read that broke off, and is told what the read tells.
func TestHeadersOfAFileReadNothing(t *testing.T) {
	s := newDataStage(t)
	s.post("/files?path=f", octetStream, strings.NewReader("0123456789"))
	if err := os.Symlink("f", filepath.Join(s.box.Files.Root, "home/user/link")); err != nil {
		t.Fatal(err)
	}
	count := &opened{Boxes: s.boxes}
	s.data.cfg.Sandboxes = count
	headers := func(method, name string) (int, http.Header) {
		r := s.request(method, "/files?path="+name, nil)
		r.Header.Set("Accept-Encoding", "identity")
		res, err := s.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		res.Header.Del("Date")
		return res.StatusCode, res.Header
	}
	for _, name := range []string{"f", "link"} {
		wantStatus, want := headers(http.MethodGet, name)
		before := count.count
		status, got := headers(http.MethodHead, name)
		if status != wantStatus || !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: %d %v, and with content %d %v", name, status, got, wantStatus, want)
		}
		if count.count != before || before == 0 {
			t.Errorf("%s was opened %d times, before %d", name, count.count, before)
		}
	}
	for name, want := range map[string]int{"none": 404, ".": 400} {
		if status, _ := headers(http.MethodHead, name); status != want {
			t.Errorf("%s: %d, want %d", name, status, want)
		}
	}
}

// TestAFileThatLies: a guest that sends less or more than it announced breaks the
// download off.
func TestAFileThatLies(t *testing.T) {
	for name, frames := range map[string]func(*channel.Conn){
		"fewer bytes": func(c *channel.Conn) { _ = c.WriteJSON(channel.FrameReply, channel.Reply{OK: true}) },
		"more bytes":  func(c *channel.Conn) { _ = c.WriteFrame(channel.FrameStdout, make([]byte, 11)) },
		"an error":    func(c *channel.Conn) { _ = c.WriteJSON(channel.FrameReply, channel.Reply{Error: "it went away"}) },
		"garbage":     func(c *channel.Conn) { _ = c.WriteFrame(channel.FrameResize, nil) },
		"nothing":     func(c *channel.Conn) { _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newDataStage(t)
			s.data.cfg.Sandboxes = &liar{s.boxes, frames}
			res, err := s.server.Client().Do(s.request(http.MethodGet, "/files?path=f", nil))
			if err != nil {
				return // it broke before the first byte
			}
			defer res.Body.Close()
			if got, err := io.ReadAll(res.Body); err == nil {
				t.Errorf("%d bytes looked like a whole file", len(got))
			}
		})
	}
}

func TestCompose(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		for _, name := range []string{"1", "2"} {
			s.post("/files?path=part"+name, octetStream, strings.NewReader("part "+name+";"))
		}
		status, body := s.post("/files/compose", "application/json", strings.NewReader(`{"source_paths":["part1","part2"],"destination":"whole"}`))
		if status != 200 || s.file("home/user/whole") != "part 1;part 2;" || !strings.Contains(body, `"path":"/home/user/whole"`) {
			t.Errorf("%d %s: %s", status, body, s.file("home/user/whole"))
		}
		if got := s.file("home/user/part1"); !strings.Contains(got, "no such file") {
			t.Errorf("a source is still there: %s", got)
		}
		if status, body = s.post("/files/compose", "application/json", strings.NewReader(`{"source_paths":["whole","gone"],"destination":"whole"}`)); status != 404 {
			t.Errorf("%d %s", status, body)
		}
		if got := s.file("home/user/whole"); got != "part 1;part 2;" {
			t.Errorf("a compose that failed left %q", got)
		}
	})
}

// TestComposeOverASource: a source that is the destination by another name is not
// removed with the others.
func TestComposeOverASource(t *testing.T) {
	for name, c := range map[string]struct{ source, destination string }{
		"the same":           {"one", "one"},
		"absolute":           {"/home/user/one", "one"},
		"with a dot":         {"./one", "one"},
		"with dots":          {"dir/../one", "one"},
		"twice a slash":      {"/home//user/one", "/home/user/one"},
		"dots in the result": {"one", "dir/../one"},
		"through a link":     {"link/one", "one"},
		"the result by one":  {"one", "link/one"},
		"a link to it":       {"alias", "one"},
		"by a link to it":    {"one", "alias"},
		"the link itself":    {"./alias", "alias"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDataStage(t)
			home := filepath.Join(s.box.Files.Root, "home/user")
			for _, err := range []error{
				os.Mkdir(filepath.Join(home, "dir"), 0o755), os.Symlink(".", filepath.Join(home, "link")), os.Symlink("one", filepath.Join(home, "alias")),
				os.WriteFile(filepath.Join(home, "one"), []byte("first;"), 0o644), os.WriteFile(filepath.Join(home, "two"), []byte("second;"), 0o644),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			status, body := s.post("/files/compose", "application/json", strings.NewReader(fmt.Sprintf(`{"source_paths":[%q,"two","two"],"destination":%q}`, c.source, c.destination)))
			if got := s.file(filepath.Join("home/user", strings.TrimPrefix(c.destination, "/home/user"))); status != 200 || got != "first;second;second;" {
				t.Errorf("%d %s: the result is %q", status, body, got)
			}
			if _, err := os.Stat(filepath.Join(home, "two")); err == nil {
				t.Error("the other source is still there")
			}
		})
	}
}
