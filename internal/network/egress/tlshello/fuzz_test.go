package tlshello_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress/tlshello"
)

// recorded is a connection that has said all that it says.
type recorded struct {
	io.Reader
	net.Conn
}

func (r recorded) Read(p []byte) (int, error)     { return r.Reader.Read(p) }
func (recorded) Write(p []byte) (int, error)      { return len(p), nil }
func (recorded) Close() error                     { return nil }
func (recorded) SetDeadline(time.Time) error      { return nil }
func (recorded) SetReadDeadline(time.Time) error  { return nil }
func (recorded) SetWriteDeadline(time.Time) error { return nil }

var errRead = errors.New("it was read")

// asGoReadsIt is the name that the standard library's server finds.
func asGoReadsIt(sent []byte) (name string, ok bool) {
	err := tls.Server(recorded{Reader: strings.NewReader(string(sent))}, &tls.Config{
		GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
			name = i.ServerName
			return nil, errRead
		},
	}).HandshakeContext(context.Background())
	return name, errors.Is(err, errRead)
}

// FuzzClient: however the bytes come, they mean the same; and what is taken here for a
// host's name is that to a server, too.
func FuzzClient(f *testing.F) {
	for _, size := range []int{1, 40, 1 << 14} {
		f.Add(client(body(serverName("api.example")), size), uint16(1))
	}
	f.Add(client(body(extension(0x0a0a), serverName("API.example"), extension(0xfe0d, 0)), 1<<14), uint16(9))
	f.Add(client(body(serverName("a", "b")), 1<<14), uint16(3))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint16(2))
	f.Add(append([]byte{20, 3, 3, 0, 1, 1}, client(body(serverName("api.example")), 60)...), uint16(5))
	f.Fuzz(func(t *testing.T, sent []byte, piece uint16) {
		whole, n, done, err := read(&tlshello.Client{}, sent, 1<<30)
		inPieces, m, doneToo, errToo := read(&tlshello.Client{}, sent, int(piece)+1)
		if whole != inPieces || done != doneToo || (err == nil) != (errToo == nil) || done && n != m {
			t.Fatalf("whole %+v %d %v %v, in pieces %+v %d %v %v", whole, n, done, err, inPieces, m, doneToo, errToo)
		}
		if done && err != nil || done && n > tlshello.MaxSize {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if name, ok := asGoReadsIt(sent); done && ok && strings.ToLower(name) != whole.Name {
			t.Fatalf("%q here, and %q to a server", whole.Name, name)
		}
		_, _, _, _ = read(tlshello.Again(), sent, int(piece)+1)
		var s tlshello.Server
		_, _ = s.Take(sent)
	})
}
