package e2b

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWhatNobodyTakesEnds: visits of ports and downloads of which the client takes nothing any more,
// and stays, do not last, and other requests of the connection go on.
func TestWhatNobodyTakesEnds(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.data.cfg.Untaken = 50 * time.Millisecond
		ended := make(chan string, 2)
		inner := s.server.Config.Handler
		s.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { ended <- r.URL.Path }()
			inner.ServeHTTP(w, r)
		})
		s.serves(3000, func(w http.ResponseWriter, _ *http.Request) {
			for piece := make([]byte, 1<<20); ; {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		})
		big, err := os.Create(filepath.Join(s.box.Files.Root, "home/user/big"))
		if err != nil {
			t.Fatal(err)
		}
		if err := big.Truncate(256 << 20); err != nil {
			t.Fatal(err)
		}
		_ = big.Close()
		for _, r := range []*http.Request{s.port("3000", "/visit"), s.request(http.MethodGet, "/files?path=big", nil)} {
			res, err := s.server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("%s: %d", r.URL, res.StatusCode)
			}
			if path := <-ended; path != r.URL.Path {
				t.Errorf("%s ended", path)
			}
			s.got(filesystemService+"MakeDir", `{"path":"w`+r.URL.Path+`"}`)
			<-ended
		}
	})
}

// TestStreamsThatNobodyTakesEnd, whichever route they are of: their client is there, and reads no more.
func TestStreamsThatNobodyTakesEnd(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.data.cfg.Untaken = 50 * time.Millisecond
		ended := make(chan struct{})
		s.data.routes.HandleFunc("GET /stream", s.data.serveREST(func(w http.ResponseWriter, c *call) error {
			defer close(ended)
			out := openStream(c.Context(), w, c.codec)
			defer out.closeStream()
			for piece := make([]byte, 1<<20); ; {
				if out.sendBytes("stdout", piece) != nil {
					return nil
				}
			}
		}))
		res, err := s.server.Client().Do(s.request(http.MethodGet, "/stream", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("a stream of which nothing is taken goes on")
		}
	})
}

// TestHalvesOfUpgrades: a client that ends its half of what was upgraded is still answered, and that is
// passed on to the server inside.
func TestHalvesOfUpgrades(t *testing.T) {
	s := newDataStage(t)
	s.serves(3000, func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		said, _ := io.ReadAll(buffered)
		_, _ = io.WriteString(conn, "all of "+string(said))
	})
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: 3000-sb01.box.example\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer := bufio.NewReader(conn)
	res, err := http.ReadResponse(answer, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %+v", err, res)
	}
	defer res.Body.Close()
	_, _ = io.WriteString(conn, "it")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(answer); err != nil || string(said) != "all of it" {
		t.Errorf("%q %v", said, err)
	}
}
