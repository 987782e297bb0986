package daemon

import (
	"fmt"
	"net/http/httptest"
	"testing"
)

// TestOneNetworkHasOnePace: who holds a network of IPv6 asks no faster by asking from each of its
// addresses, as its connections are counted together (networkOf). Another network has a pace of
// its own (the control).
func TestOneNetworkHasOnePace(t *testing.T) {
	f := &front{pace: newPace(10, 20), ownerOf: func(string) (string, bool) { return "", false }}
	from := func(address string) bool {
		r := httptest.NewRequest("GET", "/sandboxes", nil)
		r.RemoteAddr = address
		_, _, _, ok := f.admitRequest(r, "", false)
		return ok
	}
	admitted := 0
	for range 200 {
		if from("[2001:db8:0:1::1]:9") {
			admitted++
		}
	}
	if admitted == 0 || admitted > 20 {
		t.Fatalf("the control: one address was let in %d times", admitted)
	}
	if !from("[2001:db8:0:2::1]:9") {
		t.Fatal("the control: another network has the pace of the first")
	}
	others := 0
	for i := range 200 {
		if from(fmt.Sprintf("[2001:db8:0:1::%x]:9", i+2)) {
			others++
		}
	}
	if others > 20 {
		t.Errorf("another %d of 200 requests of the same network were let in", others)
	}
}
