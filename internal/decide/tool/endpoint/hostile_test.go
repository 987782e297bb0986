package endpoint_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool/endpoint"
)

// raw is an endpoint that answers with these bytes, and then with what more does with the
// connection, until the test ends.
func raw(t *testing.T, answer string, more func(net.Conn)) *endpoint.Endpoint {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				request, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, request.Body)
				_, _ = io.WriteString(conn, answer)
				if more != nil {
					more(conn)
				}
			}()
		}
	}()
	e, err := endpoint.New("http://" + l.Addr().String() + "/tool")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestEndpointsThatLie: about their length, their form, or when they end. Each is a failure
// within the call's bounds, or exactly the answer that was announced, and none says more
// to the sandbox.
func TestEndpointsThatLie(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\n"
	for what, c := range map[string]struct {
		answer string
		more   func(net.Conn)
		want   string // or, after a !, what the failure says
	}{
		"the control":              {ok + "Content-Length: 2\r\n\r\nok", nil, "ok"},
		"a length too long":        {ok + "Content-Length: 20\r\n\r\nok", nil, "!broke its answer off"},
		"a length of terabytes":    {ok + "Content-Length: 9999999999999\r\n\r\n", flood, "!more than"},
		"a length too short":       {ok + "Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n" + tool.Size(7), nil, "ok"},
		"two lengths":              {ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", nil, "!did not answer"},
		"a negative length":        {ok + "Content-Length: -1\r\n\r\nok", nil, "!did not answer"},
		"a broken chunk":           {ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\nffffffffffffffff\r\n", nil, "!broke its answer off"},
		"chunks without an end":    {ok + "Transfer-Encoding: chunked\r\n\r\n", chunks, "!more than"},
		"a header without an end":  {ok, func(c net.Conn) { endless(c, "X: "+strings.Repeat("y", 1_000)+"\r\n") }, "!did not answer"},
		"hints without an end":     {"", func(c net.Conn) { endless(c, "HTTP/1.1 103 Early Hints\r\n\r\n") }, "!did not answer"},
		"no HTTP":                  {"SSH-2.0-x\r\n", nil, "!did not answer"},
		"nothing":                  {"", nil, "!did not answer"},
		"a status of its own":      {"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", nil, "ok"},
		"an upgrade":               {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", nil, "!the status 101"},
		"500 with a body for ever": {"HTTP/1.1 500 No\r\n\r\n", flood, "!the status 500"},
	} {
		got, err := raw(t, c.answer, c.more).Run(t.Context(), tool.Call{Arguments: `{}`, MaxOutput: 100_000})
		switch want, fails := strings.CutPrefix(c.want, "!"); {
		case !fails && (err != nil || string(got) != want):
			t.Errorf("%s: %q, %v", what, got, err)
		case fails:
			f, is := err.(*tool.Failure) //nolint:errorlint // the contract is this type
			if !is || got != nil || !strings.Contains(f.Sentence, want) {
				t.Errorf("%s: %d bytes, %v", what, len(got), err)
			}
		}
	}
}

func flood(c net.Conn) { endless(c, strings.Repeat("x", 4_096)) }

func chunks(c net.Conn) { endless(c, fmt.Sprintf("1000\r\n%s\r\n", strings.Repeat("x", 4_096))) }

func endless(c net.Conn, text string) {
	for {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// TestOneThatTrickles: a byte now and then is no progress; the call's time ends it.
func TestOneThatTrickles(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	e := raw(t, "HTTP/1.1 200 OK\r\n\r\n", func(c net.Conn) {
		for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
			if _, err := io.WriteString(c, "x"); err != nil {
				return
			}
			select {
			case <-began:
			default:
				close(began)
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := e.Run(ctx, tool.Call{Arguments: `{}`, MaxOutput: 1 << 20})
		ended <- err
	}()
	<-began
	cancel()
	if err := <-ended; err == nil {
		t.Error("a call that was ended has a result")
	}
}
