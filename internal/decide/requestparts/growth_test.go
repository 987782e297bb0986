package requestparts_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
)

// TestABodyOfManyHeadsIsReadInTime: a body that is nothing but heads of parts takes no more than a hundred times as long as one
// of the same length with one part. Both are looked through by the gateway for any guest, and neither can be
// given up.
func TestABodyOfManyHeadsIsReadInTime(t *testing.T) {
	const length, heads, times = 1 << 20, 10_000, 100
	for what, c := range map[string]struct {
		kind  string
		field func(n int) string
		begin string // of the rest
		fill  string
		end   string
	}{
		"of one coding":     {"multipart/form-data; boundary=x", func(int) string { return "content-transfer-encoding:7bit\n " }, "", "\r\n\ra", ""},
		"of many codings":   {"application/octet-stream", func(n int) string { return fmt.Sprintf("content-transfer-encoding:x%d\n", n) }, "\r\n\r\n", "\r\r\r\r", "\n--x"},
		"of many parts":     {"application/octet-stream", func(n int) string { return fmt.Sprintf("content-transfer-encoding:x%d\n\n", n) }, "", "\r\r\r\r", "\n--x"},
		"with end in sight": {"application/octet-stream", func(n int) string { return fmt.Sprintf("content-transfer-encoding:x%d\n\n", n) }, "", "\n \t ", ""},
	} {
		filled := func(heads int) []byte {
			var head strings.Builder
			for n := range heads {
				head.WriteString(c.field(n))
			}
			return []byte(head.String() + c.begin + strings.Repeat(c.fill, (length-head.Len())/4) + c.end)
		}
		t.Run(what, func(t *testing.T) { noLonger(t, c.kind, filled(1), filled(heads), times) })
	}
}

// noLonger tells whether a body is looked through before another one is so many times.
func noLonger(t *testing.T, kind string, one, many []byte, times int) {
	t.Helper()
	read := func(body []byte) {
		visits := 0
		requestparts.BodyOf(http.Header{"Content-Type": {kind}}).Each(body, func([]byte) bool { visits++; return true })
		if visits == 0 {
			t.Error("INCONCLUSIVE: nothing is read")
		}
	}
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		read(many)
		over.Store(true)
	}()
	goes := 0
	for ; goes < times && !over.Load(); goes++ {
		read(one)
	}
	if !over.Load() {
		t.Errorf("while a body of %d bytes with many heads was looked through, one as long with one head was so %d times", len(many), goes)
	}
	<-ended
}
