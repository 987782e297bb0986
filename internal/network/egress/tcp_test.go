package egress_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

func databases() map[string][]int {
	return map[string][]int{"api.example": {5432, 9000}, "inside.example": {5432}, "nowhere.example": {5432}, "index.example": {5432}}
}

// TestHostThatSpeaksFirst: what is said is nobody's matter where an entry says so, and it
// is the host that begins.
func TestHostThatSpeaksFirst(t *testing.T) {
	at := newPlace(t)
	d := &fakeDoor{allowed: databases(), tcp: 5432}
	served := make(chan error, 1)
	go func() {
		conn, err := at.Accept()
		if err == nil {
			defer conn.Close()
			_, err = io.WriteString(conn, "\x00who is there?")
		}
		if err == nil {
			_, err = io.Copy(conn, conn) // until the guest says no more
		}
		served <- err
	}()
	conn := to(t, uplinkTo(t, d, egress.Limits{}, pinned(t, at.Addr()))(), "api.example", 5432)
	greeting := make([]byte, 14)
	if _, err := io.ReadFull(conn, greeting); err != nil || string(greeting) != "\x00who is there?" {
		t.Fatalf("%q, %v", greeting, err)
	}
	if _, err := io.WriteString(conn, "\x01me"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "\x01me" {
		t.Errorf("%q, %v", got, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	d.until(t, "the end", func() bool { return len(d.ended) == 1 })
	if e := d.ended[0]; e.BytesOut != 3 || e.BytesIn != 17 || e.Problem != "" || e.Address != at.Addr().String() {
		t.Errorf("%+v", e)
	}
	if len(d.begun) != 1 || d.begun[0].Protocol != door.ProtocolTCP || d.begun[0].Port != 5432 || fmt.Sprint(d.begun[0].Addresses) != "[127.0.0.1]" {
		t.Errorf("%+v", d.begun)
	}
}

// TestHostsThatAreNotReachedByTCP: the guest is not told that it is connected, and why not
// is on record. Without the word of an entry it has to say which host it means.
func TestHostsThatAreNotReachedByTCP(t *testing.T) {
	at := newPlace(t)
	d := &fakeDoor{allowed: databases(), tcp: 5432}
	dial := uplinkTo(t, d, egress.Limits{HelloTime: 200 * time.Millisecond}, pinned(t, at.Addr()))
	refused := func(name, reason, rule string) {
		t.Helper()
		if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenTCP, Name: name, Port: 5432}); r.OK || !strings.Contains(r.Error, reason) {
			t.Errorf("%s: %+v", name, r)
		}
		if rule != "" && !slices.ContainsFunc(d.rejected, func(s string) bool { return strings.HasPrefix(s, rule+" "+name+":5432 ") }) {
			t.Errorf("%s: on record are %q", name, d.rejected)
		}
	}
	refused("inside.example", "resolves to a private address", "network.address")
	refused("nowhere.example", "does not resolve", "network.unresolved")
	refused("index.example", "is a registry", "network.protocol")
	refused("evil.example", "no such name in the policy", "")
	d.denied = true
	refused("api.example", "closed by its client", "")
	d.denied = false
	for name, sent := range map[string]string{"nothing": "", "no TLS": "\x00"} {
		conn := to(t, dial(), "api.example", 9000)
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(conn); len(got) > 0 {
			t.Errorf("%s: answered %q", name, got)
		}
	}
	d.until(t, "both for want of tcp: true", func() bool {
		other := 0
		for _, said := range d.rejected {
			if strings.HasSuffix(said, "; other protocols need an entry with tcp: true") {
				other++
			}
		}
		return other == 2
	})
	if at.reached() != 0 || len(d.begun) != 0 {
		t.Errorf("%d connections, %v", at.reached(), d.begun)
	}
	if err := at.Close(); err != nil {
		t.Fatal(err)
	}
	refused("api.example", "api.example can't be connected to on port 5432", "")
	d.until(t, "the end", func() bool { return len(d.ended) == 1 && d.ended[0].Unreached })
}
