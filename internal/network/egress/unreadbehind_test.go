package egress_test

import (
	"crypto/tls"
	"strings"
	"testing"
)

// notRequests are what net/http answers by itself, of which nothing is behind a good request's end.
func notRequests() map[string]string {
	return map[string]string{
		"garbage":              "\x00\x01\x02\r\n\r\n",
		"no version":           "GET /\r\n\r\n",
		"another version":      "GET /good/x HTTP/9.9\r\nHost: api.example\r\n\r\n",
		"a field without name": "DELETE /good/x HTTP/1.1\r\nHost: api.example\r\n: x\r\n\r\n",
		"an unknown encoding":  "POST /good/x HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: x\r\n\r\n",
		"two lengths":          "POST /good/x HTTP/1.1\r\nHost: api.example\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"no host":              "GET /good/x HTTP/1.1\r\n\r\n", // which net/http finds later than the others
	}
}

// TestWhatHTTP1AnswersByItselfIsOnRecordBehindARequest: the same as TestWhatHTTP1AnswersByItselfIsOnRecord, of
// what comes second on a connection, together with the first or once that is answered.
func TestWhatHTTP1AnswersByItselfIsOnRecordBehindARequest(t *testing.T) {
	const good = "GET /good/x HTTP/1.1\r\nHost: api.example\r\n\r\n"
	for name, said := range notRequests() {
		for when, before := range map[string]string{"alone": "", "behind": good} {
			t.Run(name+" "+when, func(t *testing.T) {
				got := &seen{}
				e := endAt(t, got, "api.example")
				conn, problem := e.opens(t, "sb-1")
				if problem != "" {
					t.Fatal(problem)
				}
				config := e.tls.Clone()
				config.NextProtos = []string{"http/1.1"}
				c := tls.Client(conn, config)
				defer c.Close()
				if _, err := c.Write([]byte(before + said)); err != nil {
					t.Fatal(err)
				}
				all := new(strings.Builder)
				buf := make([]byte, 4096)
				for {
					n, err := c.Read(buf)
					all.Write(buf[:n])
					if err != nil { // the server ends the connection at what is no request
						break
					}
				}
				_ = c.Close()
				if before != "" && !strings.HasPrefix(all.String(), "HTTP/1.1 200") {
					t.Fatalf("INCONCLUSIVE: the first was answered with %q", all)
				}
				if before != "" {
					e.door.until(t, "the end", func() bool { return len(e.door.ended) > 0 })
				} else {
					e.door.until(t, "the record", func() bool { return len(e.door.rejected) > 0 })
				}
				if n := len(e.door.rejected); n != 1 {
					t.Errorf("the server answered %q, and %d records tell of what was no request", all, n)
				}
			})
		}
	}
}
