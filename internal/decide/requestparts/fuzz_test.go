package requestparts

import (
	"bytes"
	"net/http"
	"testing"
)

// FuzzEach: no body, whatever its header says of it, panics what reads it, or has more readings than may
// be; one that is not encoded is read as it is.
func FuzzEach(f *testing.F) {
	for _, kind := range []string{"", "text/plain; charset=utf-7", "multipart/mixed; boundary=x", "message/rfc822", "application/grpc", "application/grpc-web-text", "application/connect+json", "application/json; charset=utf-16"} {
		f.Add(kind, "", "", []byte("--x\r\nContent-Transfer-Encoding: base64\r\n\r\nAAA=\r\n--x--"))
		f.Add(kind, "gzip, aws-chunked", "", []byte("4;a=b\r\n\x1f\x8b\x08\x00\r\n0\r\n\r\n"))
		f.Add(kind, "", "quoted-printable", []byte("+AHQ-he =77ord\xff\xfew\x00"))
		f.Add(kind, "deflate", "base64", []byte("\x00\x00\x00\x00\x04the "))
	}
	f.Fuzz(func(t *testing.T, kind, coding, transfer string, body []byte) {
		if len(body) > 1<<16 {
			return
		}
		h := http.Header{}
		for field, value := range map[string]string{"Content-Type": kind, "Content-Encoding": coding, "Content-Transfer-Encoding": transfer} {
			if value != "" {
				h.Set(field, value)
			}
		}
		b, total, whole := BodyOf(h), 0, false
		unread := b.Each(bytes.Clone(body), func(reading []byte) bool {
			total += len(reading)
			whole = whole || bytes.Equal(reading, body)
			return true
		})
		if most := 64 * (maxReadings*len(body) + leastReading); total > most {
			t.Fatalf("%d bytes have readings of %d", len(body), total)
		}
		if len(b.Codings()) == 0 && unread == "" && !whole {
			t.Fatalf("what is not encoded is not read as it is: %q", body)
		}
	})
}
