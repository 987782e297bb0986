package httphead_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// passing serves a proxy to a host that handles requests, over both protocols without TLS. framed is of the host.
func passing(t *testing.T, framed bool, host http.HandlerFunc, before func(r *http.Request)) (address string, client *http.Client) {
	t.Helper()
	at, overFrames := serving(t, host)
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Transport: &http.Transport{DialContext: dialHost}, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }}
	if framed {
		proxy.Transport = overFrames.Transport
	}
	return serving(t, func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before(r)
		}
		passing, r := httphead.NewPassing(r)
		passing.Answer(&httphead.Answer{ResponseWriter: w, Within: time.Minute}, func(w http.ResponseWriter) { proxy.ServeHTTP(w, r) })
	})
}

// dialHost connects as whoever passes requests on does.
func dialHost(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &httphead.Conn{Conn: conn}, nil
}

// TestAnAnswerIsHeardOfAHostThatCloses without having read what it is sent, so that nothing can be written to it any
// more while its answer is read.
func TestAnAnswerIsHeardOfAHostThatCloses(t *testing.T) {
	answer := strings.Repeat("answer", 4_000)
	host, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	go func() {
		for {
			conn, err := host.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			fmt.Fprintf(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
			_ = conn.Close() // with bytes that nobody has read: the kernel resets it
		}
	}()
	transport := &http.Transport{DialContext: dialHost}
	defer transport.CloseIdleConnections()
	for i := range 200 {
		said, err := asks(&http.Client{Transport: transport}, "http://"+host.Addr().String(), bytes.NewReader(make([]byte, 8<<20)))
		if err != nil || string(said) != answer {
			t.Fatalf("round %d: %d bytes of %d (%v)", i, len(said), len(answer), err)
		}
	}
}

// TestAnEarlyAnswerArrivesWhole: a host that answers before it has read a request's body is heard to its end, whatever
// is spoken on either side, however long the body is and however it is framed, and whether the host reads it later.
func TestAnEarlyAnswerArrivesWhole(t *testing.T) {
	const rounds = 60
	half := bytes.Repeat([]byte("answer"), 25_000)
	answer := append(bytes.Clone(half), half...)
	early := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/reads" {
			_ = http.NewResponseController(w).EnableFullDuplex() // or net/http reads the body first
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(half) // it is asked for in full below
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/reads" {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				panic(http.ErrAbortHandler)
			}
		}
		_, _ = w.Write(half)
	}
	for _, toHost := range []bool{false, true} {
		address, framed := passing(t, toHost, early, nil)
		for client, by := range map[string]*http.Client{"HTTP/1.1": {Transport: &http.Transport{}}, "HTTP/2": framed} {
			for _, path := range []string{"/", "/reads"} {
				for name, body := range map[string]func() io.Reader{
					"short":             func() io.Reader { return bytes.NewReader(make([]byte, 4<<10)) },
					"long":              func() io.Reader { return bytes.NewReader(make([]byte, 200<<10)) },
					"longer than all":   func() io.Reader { return bytes.NewReader(make([]byte, 8<<20)) },
					"of unknown length": func() io.Reader { return io.MultiReader(bytes.NewReader(make([]byte, 100<<10))) },
				} {
					t.Run(fmt.Sprintf("%s, to the host HTTP/2: %v%s, %s", client, toHost, path, name), func(t *testing.T) {
						var all sync.WaitGroup
						for range 3 {
							all.Go(func() {
								for i := range rounds / 3 {
									if said, err := asks(by, address+path, body()); err != nil || !bytes.Equal(said, answer) {
										t.Errorf("round %d: %d bytes of %d (%v)", i, len(said), len(answer), err)
										return
									}
								}
							})
						}
						all.Wait()
					})
				}
			}
		}
	}
}

// asks posts a body and reads the answer.
func asks(by *http.Client, address string, body io.Reader) ([]byte, error) {
	answer, err := by.Post(address, "application/octet-stream", body)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		return nil, fmt.Errorf("the answer is %s", answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// TestAConnectionGoesOnBehindAnEarlyAnswer when little of the body is left and comes soon, as that of any client that
// says all before it listens. Else the client is told that the connection ends, so that it sends no request there.
func TestAConnectionGoesOnBehindAnEarlyAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		head, begin, rest string
		ends              bool
	}{
		"little":                {"Content-Length: 11", "hello", " world", false},
		"much":                  {"Content-Length: 1000000", "hello", strings.Repeat("x", 1_000_000-5), true},
		"nobody knows how much": {"Transfer-Encoding: chunked", "5\r\nhello\r\n", "6\r\n world\r\n0\r\n\r\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := passing(t, false, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex() // or it waits for the body itself
				w.WriteHeader(http.StatusAccepted)
				_ = http.NewResponseController(w).Flush()
				_, _ = io.Copy(io.Discard, r.Body) // or net/http panics at the next request
			}, nil)
			conn, from := says(t, address)
			for i := range 20 {
				fmt.Fprintf(conn, "POST /x HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n%s", c.head, c.begin)
				head, err := from.Peek(1) // the answer begins before the body has ended
				if err != nil || string(head) != "H" {
					t.Fatalf("request %d: %q (%v)", i, head, err)
				}
				_, _ = io.WriteString(conn, c.rest)
				answer, err := http.ReadResponse(from, nil)
				if err != nil || answer.StatusCode != http.StatusAccepted || answer.Close != c.ends {
					t.Fatalf("request %d: %+v (%v)", i, answer, err)
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				if c.ends {
					conn, from = says(t, address)
				}
			}
		})
	}
}

// TestARequestThatIsNotSentLeavesItsConnection: a proxy that answers by itself reads the body first, as much as one
// reads, so that a client that says all before it listens has its connection for the next request.
func TestARequestThatIsNotSentLeavesItsConnection(t *testing.T) {
	refuses := &httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = "http", "host" },
		Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			httphead.Unsent(w)
			w.WriteHeader(http.StatusAccepted)
		},
	}
	address, _ := serving(t, func(w http.ResponseWriter, r *http.Request) {
		passing, r := httphead.NewPassing(r)
		passing.Answer(&httphead.Answer{ResponseWriter: w, Within: time.Minute}, func(w http.ResponseWriter) { refuses.ServeHTTP(w, r) })
	})
	for size, ends := range map[int]bool{1: false, 200 << 10: false, 1 << 20: true} {
		conn, from := says(t, address)
		fmt.Fprintf(conn, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", size)
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // it has deadlines
		if begun, err := from.Peek(1); err == nil {
			t.Errorf("%d bytes: the answer begins with %q before its client has said all", size, begun)
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second)) // as above
		go fmt.Fprint(conn, strings.Repeat("x", size))
		answer, err := http.ReadResponse(from, nil)
		if err != nil || answer.StatusCode != http.StatusAccepted || answer.Close != ends {
			t.Fatalf("%d bytes: %+v (%v)", size, answer, err)
		}
	}
}

// TestARestThatDoesNotComeIsNoRequest: the answer ends though the client waits with the rest of its body for that, and
// the connection with it; and a rest that comes later is not read as a request.
func TestARestThatDoesNotComeIsNoRequest(t *testing.T) {
	const rest = "DELETE /everything HTTP/1.1\r\nHost: h\r\n\r\n"
	var asked atomic.Int64
	address, _ := passing(t, false, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // or it waits for the body itself
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "no ")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "more")
	}, func(*http.Request) { asked.Add(1) })
	conn, from := says(t, address)
	fmt.Fprintf(conn, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\nhello", 5+len(rest))
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(answer.Body); err != nil || string(said) != "no more" {
		t.Fatalf("the answer is %q (%v)", said, err)
	}
	_, _ = io.WriteString(conn, rest)
	if more, err := io.ReadAll(from); len(more) > 0 || err != nil && !strings.Contains(err.Error(), "reset") || asked.Load() != 1 {
		t.Errorf("behind the answer came %q (%v), and %d requests were handled", more, err, asked.Load())
	}
}

// TestAnUpgradeIsPassed: what is taken over is left alone.
func TestAnUpgradeIsPassed(t *testing.T) {
	address, _ := passing(t, false, func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		_, _ = io.WriteString(conn, "echo of "+line)
	}, nil)
	conn, from := says(t, address)
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\nContent-Length: 2\r\n\r\nab")
	answer, err := http.ReadResponse(from, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v (%v)", answer, err)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := from.ReadString('\n'); line != "echo of abhello\n" {
		t.Errorf("%q (%v)", line, err)
	}
}

// says opens a connection to an address.
func says(t *testing.T, address string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second)) // it has deadlines
	return conn, bufio.NewReader(conn)
}

// TestALostRequestEndsItsConnection: a proxy that panics has nobody look for the end of the body, also where somebody
// recovers from that and answers. Bytes behind a broken body are not read as a request then.
func TestALostRequestEndsItsConnection(t *testing.T) {
	var asked atomic.Int64
	address, _ := serving(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		passing, r := httphead.NewPassing(r)
		passing.Answer(&httphead.Answer{ResponseWriter: w, Within: time.Minute}, func(http.ResponseWriter) {
			_, _ = io.Copy(io.Discard, r.Body)
			panic("a fault")
		})
	})
	for _, body := range []string{"5\r\nhello\r\nZZ\r\n", "5\r\nhelloXX", "5\r\nhello\r\n0\r\nno field\r\n\r\n"} {
		asked.Store(0)
		conn, from := says(t, address)
		_, _ = io.WriteString(conn, "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"+body+"DELETE /everything HTTP/1.1\r\nHost: h\r\n\r\n")
		answer, err := http.ReadResponse(from, nil)
		if err != nil || answer.StatusCode != http.StatusInternalServerError {
			t.Fatalf("%q: %+v (%v)", body, answer, err)
		}
		if more, err := io.ReadAll(from); len(more) > 0 || err != nil && !strings.Contains(err.Error(), "reset") || asked.Load() != 1 {
			t.Errorf("%q: behind the answer came %q (%v), and %d requests were handled", body, more, err, asked.Load())
		}
	}
}

// TestNobodyIsGivenLeaveForABodyThatIsNotSent, however the client says that it awaits that. It is told by the head that
// it may say no more here.
func TestNobodyIsGivenLeaveForABodyThatIsNotSent(t *testing.T) {
	address, _ := serving(t, func(w http.ResponseWriter, r *http.Request) {
		passing, _ := httphead.NewPassing(r)
		passing.Answer(&httphead.Answer{ResponseWriter: w, Within: time.Minute}, func(w http.ResponseWriter) {
			httphead.Unsent(w)
			w.WriteHeader(http.StatusBadGateway)
		})
	})
	for _, expects := range []string{"100-continue", "100-Continue ", "100-continue, 100-continue", ",100-continue"} {
		conn, from := says(t, address)
		fmt.Fprintf(conn, "POST /x HTTP/1.1\r\nHost: h\r\nExpect: %s\r\nContent-Length: 5\r\n\r\n", expects)
		line, err := from.ReadString('\n')
		if err != nil || !strings.Contains(line, "502") {
			t.Errorf("%q is told %q (%v)", expects, line, err)
		}
	}
}
