package egress_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// TestStrangeRequests: the authority is the connection's own in all of these, and something
// else is not: the host sees none of them.
func TestStrangeRequests(t *testing.T) {
	at, got := newPlace(t), &seen{}
	s := httptest.NewUnstartedServer(got)
	_ = s.Listener.Close() // another takes its place
	s.Listener = at
	s.Start()
	t.Cleanup(s.Close)
	const host, upgrade = "Host: api.example\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	for name, c := range map[string]struct{ sent, record string }{
		"nothing strange":         {"GET http://api.example/x HTTP/1.1\r\n" + host + "\r\n", ""}, // the control
		"a WebSocket":             {"GET / HTTP/1.1\r\n" + host + upgrade + "\r\n", ""},
		"who asks, in the target": {"GET http://me:secret@api.example/x HTTP/1.1\r\n" + host + "\r\n", "a request's target is none of this host"},
		"no path":                 {"GET http://api.example?x HTTP/1.1\r\n" + host + "\r\n", "a request's target is none of this host"},
		"a path of none":          {"GET http:x HTTP/1.1\r\n" + host + "\r\n", "a request's target is none of this host"},
		"the server as a whole":   {"OPTIONS * HTTP/1.1\r\n" + host + "\r\n", "a request's target is none of this host"},
		"two protocols":           {"GET / HTTP/1.1\r\n" + host + upgrade + "Upgrade: h2c\r\n\r\n", "a request wants to go on in a protocol that is not passed on"},
		"two protocols in one":    {"GET / HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n", "a request wants to go on in a protocol that is not passed on"},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(got.all())
			d := &fakeDoor{allowed: hosts()}
			conn := to(t, uplinkTo(t, d, egress.Limits{}, pinned(t, at.Addr()))(), "api.example", 80)
			defer conn.Close()
			if _, err := io.WriteString(conn, c.sent); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if reached := len(got.all()) > before; reached != (c.record == "") || (answer.StatusCode == http.StatusBadRequest) == reached {
				t.Errorf("answered %s, and the host saw %q", answer.Status, got.all()[before:])
			}
			record := strings.Join(d.rejected, "\n")
			if (c.record == "") != (record == "") || !strings.HasPrefix(record, strings.TrimSpace("network.http api.example:80 "+c.record)) && record != "" {
				t.Errorf("on record is %q, want %q", record, c.record)
			}
		})
	}
}

// slowDoor judges connections when it is let.
type slowDoor struct {
	fakeDoor
	let chan struct{}
}

func (d *slowDoor) Connect(ctx context.Context, ask door.ConnectAsk) (door.Answer, error) {
	<-d.let
	return d.fakeDoor.Connect(ctx, ask)
}

// TestTimeToOpen: the time in which a stream must say what it is for is not that in which
// the host is reached, and not that for which the connection may go on.
func TestTimeToOpen(t *testing.T) {
	at := newPlace(t)
	go func() {
		if conn, err := at.Accept(); err == nil {
			defer conn.Close()
			_, _ = io.Copy(conn, conn) // until the guest says no more
		}
	}()
	d := &slowDoor{fakeDoor: fakeDoor{allowed: databases(), tcp: 5432}, let: make(chan struct{})}
	dial := uplinkTo(t, &d.fakeDoor, egress.Limits{OpenTime: 250 * time.Millisecond}, pinned(t, at.Addr()), d)
	pass := func() { // that time, told by a stream that says nothing
		silent := dial()
		defer silent.Close()
		if _, err := io.Copy(io.Discard, silent); err != nil {
			t.Fatal(err)
		}
	}
	conn := dial()
	asks, reads := channel.NewWriter(conn), channel.NewReader(conn)
	if err := asks.WriteJSON(channel.FrameOpen, keeper.StreamIdentity{Sandbox: "sb-1"}); err != nil {
		t.Fatal(err)
	}
	if err := asks.WriteJSON(channel.FrameOpen, channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: 5432}); err != nil {
		t.Fatal(err)
	}
	pass()
	close(d.let)
	var reply channel.Reply
	if err := reads.ReadJSON(channel.FrameReply, &reply); err != nil || !reply.OK {
		t.Fatalf("reached late: %+v, %v", reply, err)
	}
	pass()
	if _, err := io.WriteString(conn, "still"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "still" {
		t.Errorf("after that time: %q, %v", got, err)
	}
}
