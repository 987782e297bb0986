package daemon

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/netutil"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// start serves a handler on a free port.
func start(t *testing.T, l net.Listener, h http.Handler) (*server, <-chan error) {
	t.Helper()
	s := newServer("test", l, h, quiet())
	failed := serveAll([]*server{s})
	t.Cleanup(func() { closeAll([]*server{s}) })
	return s, failed
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	return l
}

// TestTheEndIsTold: at the end a request is answered, a stream is told, and
// nobody new comes in.
func TestTheEndIsTold(t *testing.T) {
	t.Parallel()
	began, goOn := make(chan string, 2), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/unary", func(w http.ResponseWriter, r *http.Request) {
		began <- r.URL.Path
		<-goOn
		_, _ = io.WriteString(w, "answered")
	})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first ")
		_ = http.NewResponseController(w).Flush()
		began <- r.URL.Path
		<-r.Context().Done()
		_, _ = io.WriteString(w, "last")
	})
	l := listen(t)
	s, failed := start(t, l, mux)
	answers := make(chan string, 2)
	for _, path := range []string{"/unary", "/stream"} {
		go func() {
			resp, err := http.Get("http://" + l.Addr().String() + path)
			if err != nil {
				answers <- err.Error()
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			answers <- fmt.Sprint(string(body), err)
		}()
	}
	<-began
	<-began
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		endAll(t.Context(), []*server{s}, quiet())
	}()
	for { // nobody new comes in
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			break
		}
		conn.Close()
	}
	close(goOn)
	got := []string{<-answers, <-answers}
	<-ended
	if text := strings.Join(got, ","); !strings.Contains(text, "answered<nil>") || !strings.Contains(text, "first last<nil>") {
		t.Errorf("%q", got)
	}
	select {
	case err := <-failed:
		t.Error(err)
	default:
	}
}

// TestServersHoldClientsToLimits: a header that is too large, and connections
// past their number.
func TestServersHoldClientsToLimits(t *testing.T) {
	t.Parallel()
	l := listen(t)
	start(t, netutil.LimitListener(l, 1), named("hello"))
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Large: %s\r\n\r\n", strings.Repeat("a", 2*maxHeader))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a large header: %s", resp.Status)
	}
	conn.Close()

	first, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer first.Close()
	greet := func(c net.Conn) (string, error) {
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		line, err := bufio.NewReader(c).ReadString('\n')
		return line, err
	}
	if line, err := greet(first); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q %v", line, err)
	}
	second, err := net.Dial("tcp", l.Addr().String()) // the kernel's queue takes it
	must(t, err)
	defer second.Close()
	answered := make(chan string, 1)
	go func() {
		line, _ := greet(second)
		answered <- line
	}()
	if line, err := greet(first); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("the connection that is in: %q %v", line, err)
	}
	select {
	case line := <-answered:
		t.Errorf("a second connection was answered: %q", line)
	default:
	}
	first.Close()
	if line := <-answered; !strings.Contains(line, "200") {
		t.Errorf("when there was room: %q", line)
	}
}

// TestABodyThatDoesNotCome: who is answered without having sent it keeps no
// connection, and who has sent it goes on with its own.
func TestABodyThatDoesNotCome(t *testing.T) {
	t.Parallel()
	l := listen(t)
	start(t, l, backend.Hurried(named("hello")))
	for name, c := range map[string]struct {
		body string
		goes bool
	}{
		"none of it": {"", false},
		"half of it": {"ab", false},
		"all of it":  {"abcd", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", l.Addr().String())
			must(t, err)
			defer conn.Close()
			answers := bufio.NewReader(conn)
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n%s", c.body)
			resp, err := http.ReadResponse(answers, nil)
			must(t, err)
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(body) != "hello" || resp.Close == c.goes {
				t.Errorf("%q %v, and the connection ends: %t", body, err, resp.Close)
			}
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			if _, err := http.ReadResponse(answers, nil); (err == nil) != c.goes {
				t.Errorf("the next request: %v", err)
			}
		})
	}
}

func TestListenUnixIsForThisUserOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	for range 2 { // what a killed daemon left is replaced
		l, err := listenUnix(t.Context(), path)
		must(t, err)
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		l.Close()
	}
}

func TestTheServiceManagerIsTold(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "n"), "@cofferdam-notify-test-" + fmt.Sprint(os.Getpid())} {
		address := name
		if name[0] == '@' {
			address = "\x00" + name[1:]
		}
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
		must(t, err)
		t.Setenv("NOTIFY_SOCKET", name)
		must(t, notify("READY=1"))
		buf := make([]byte, 64)
		n, err := conn.Read(buf)
		if err != nil || string(buf[:n]) != "READY=1" {
			t.Errorf("%s: %q %v", name, buf[:n], err)
		}
		conn.Close()
	}
	t.Setenv("NOTIFY_SOCKET", "/nowhere/at/all")
	if notify("READY=1") == nil {
		t.Error("a socket that is not there was told")
	}
	t.Setenv("NOTIFY_SOCKET", "")
	must(t, notify("READY=1"))
}

// TestChecksAreAskedTogether: one that does not answer keeps the others from
// nothing, and has an end.
func TestChecksAreAskedTogether(t *testing.T) {
	t.Parallel()
	met := make(chan struct{})
	h := &health{checks: []check{
		{"waits", func(ctx context.Context) error {
			select {
			case <-met:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}},
		{"meets", func(context.Context) error { close(met); return nil }},
		{"stuck", func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); !bounded {
				return fmt.Errorf("it may wait for ever")
			}
			return nil
		}},
	}}
	for _, r := range h.results(t.Context()) {
		if r.err != nil {
			t.Errorf("%s: %v", r.name, r.err)
		}
	}
}

func TestTheGatewayServesOnceItHasItsNames(t *testing.T) {
	t.Parallel()
	g := newGatewayProcess(nil)
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, "starting"},
		{func() { g.announce() }, "started again"},
		{func() { g.noteRunning(true) }, ""},
		{func() { g.noteRunning(false) }, "started again"},
		{func() { g.broken = io.ErrUnexpectedEOF }, "does not come up"},
	} {
		step.do()
		err := g.serves()
		if step.want == "" && err != nil || step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("%v, want %q", err, step.want)
		}
	}
}

func TestAStreamIsUse(t *testing.T) {
	t.Parallel()
	var u use
	if !u.isIdle(time.Hour) {
		t.Error("what was never asked is in use")
	}
	w := httptest.NewRecorder()
	u.countRequests(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if u.isIdle(0) {
			t.Error("a request that goes on is no use")
		}
	})).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if u.isIdle(time.Hour) || u.busy.Load() != 0 {
		t.Error("a request that was just answered is no use")
	}
}
