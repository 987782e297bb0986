package guest

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func listenHere(t *testing.T, network, address string) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Skipf("the tests' machine does not listen on %s: %v", address, err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func portOf(listener net.Listener) int {
	addr, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return addr.Port
}

// Bytes go both ways, and each half ends by itself.
func TestDial(t *testing.T) {
	a := startAgent(t, nil)
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			listener := listenHere(t, "tcp", address)
			ended := make(chan error, 1)
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					ended <- err
					return
				}
				defer conn.Close()
				said, err := io.ReadAll(conn) // to the host's half-close
				if err == nil {
					_, err = conn.Write(append(said, " heard"...))
				}
				ended <- err
			}()
			stream, reply := a.call(channel.Call{Kind: channel.CallDial, Port: portOf(listener)})
			if !reply.OK {
				t.Fatal(reply.Error)
			}
			if _, err := stream.Raw().Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			if err := stream.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			back, err := io.ReadAll(stream.Raw())
			if err != nil || string(back) != "hello heard" {
				t.Errorf("%q, %v", back, err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			_ = stream.Close()
		})
	}
}

// A host that reads no more has the program's connection ended, after what it said
// last, though the program goes on talking.
func TestHangUp(t *testing.T) {
	a := startAgent(t, nil)
	listener := listenHere(t, "tcp", "127.0.0.1:0")
	heard, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer conn.Close()
		said, _ := io.ReadAll(conn)
		heard <- string(said)
		for err == nil { // for as long as somebody listens
			_, err = conn.Write(make([]byte, 4096))
		}
		ended <- err
	}()
	stream, reply := a.call(channel.Call{Kind: channel.CallDial, Port: portOf(listener)})
	if _, err := stream.Raw().Write([]byte("last words")); err != nil || reply.Text == "" {
		t.Fatal(err)
	}
	_ = stream.Close()
	a.mustCall(channel.Call{Kind: channel.CallHangUp, Dial: reply.Text})
	if got := <-heard; got != "last words" {
		t.Errorf("%q", got)
	}
	if err := <-ended; err == nil {
		t.Error("the connection has no end")
	}
	a.mustCall(channel.Call{Kind: channel.CallHangUp, Dial: reply.Text}) // it is gone
	a.mustCall(channel.Call{Kind: channel.CallHangUp, Dial: "none"})
}

func TestDialRefused(t *testing.T) {
	a := startAgent(t, nil)
	listener := listenHere(t, "tcp", "127.0.0.1:0")
	port := portOf(listener)
	_ = listener.Close()
	for port, want := range map[int]error{port: fault.ErrNotFound, 0: fault.ErrInvalid, -1: fault.ErrInvalid, 65536: fault.ErrInvalid} {
		stream, reply := a.call(channel.Call{Kind: channel.CallDial, Port: port})
		if err := reply.Err(); !errors.Is(err, want) {
			t.Errorf("port %d: %v", port, err)
		}
		_ = stream.Close()
	}
}

func TestUsage(t *testing.T) {
	a := startAgent(t, nil)
	var usage channel.DiskUsage
	if err := json.Unmarshal(a.mustCall(channel.Call{Kind: channel.CallUsage}).Body, &usage); err != nil {
		t.Fatal(err)
	}
	if usage.Total <= 0 || usage.Free < 0 || usage.Free > usage.Total {
		t.Errorf("%+v", usage)
	}
}
