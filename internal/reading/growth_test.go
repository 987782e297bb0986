package reading_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/reading"
)

// TestABodyOfManyHeadsIsReadInTime: a body that is nothing but heads of parts takes no more than a hundred times as long as one
// of the same length with one part. Both are looked through by the gateway for any guest, and neither can be
// given up.
func TestABodyOfManyHeadsIsReadInTime(t *testing.T) {
	const length, heads, times = 1 << 20, 10_000, 100
	const field = "content-transfer-encoding:7bit\n "
	filled := func(heads int) []byte {
		head := strings.Repeat(field, heads)
		return []byte(head + strings.Repeat("\r\n\ra", (length-len(head))/4))
	}
	header := http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}
	read := func(body []byte) {
		visits := 0
		reading.BodyOf(header).Each(body, func([]byte) bool { visits++; return true })
		if visits == 0 {
			t.Error("INCONCLUSIVE: nothing is read")
		}
	}
	one, many := filled(1), filled(heads)
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
		t.Errorf("while a body of %d bytes with %d heads was looked through, one as long with one head was so %d times", len(many), heads, goes)
	}
	<-ended
}
