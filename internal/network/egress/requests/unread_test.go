package requests_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// TestServeOneTellsOfWhatIsNoRequestBehindOne: what net/http answers by itself is told of, as the first on a
// connection and behind a good one.
func TestServeOneTellsOfWhatIsNoRequestBehindOne(t *testing.T) {
	const good = "GET /tools HTTP/1.1\r\nHost: tools\r\n\r\n"
	for name, said := range map[string]string{
		"garbage":              "\x00\x01\x02\r\n\r\n",
		"another version":      "GET / HTTP/9.9\r\nHost: tools\r\n\r\n",
		"a field without name": "DELETE / HTTP/1.1\r\nHost: tools\r\n: x\r\n\r\n",
		"an unknown encoding":  "POST / HTTP/1.1\r\nHost: tools\r\nTransfer-Encoding: x\r\n\r\n",
		"no host":              "GET / HTTP/1.1\r\n\r\n", // which net/http finds later than the others
	} {
		for when, words := range map[string][]string{
			"alone": {said}, "with a good one": {good + said}, "once a good one is answered": {good, said},
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				here, there := net.Pipe()
				server := &http.Server{
					Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Content-Length", "2")
						_, _ = io.WriteString(w, "ok")
					}),
					ErrorLog: log.New(io.Discard, "", 0),
				}
				told := 0
				served := make(chan struct{})
				go func() {
					defer close(served)
					requests.ServeOne(there, server, func(string) { told++ })
				}()
				all := new(strings.Builder)
				buf := make([]byte, 4096)
				for i, one := range words {
					if _, err := io.WriteString(here, one); err != nil {
						t.Fatal(err)
					}
					for i < len(words)-1 && !strings.HasSuffix(all.String(), "ok") {
						n, err := here.Read(buf)
						if all.Write(buf[:n]); err != nil {
							t.Fatalf("INCONCLUSIVE: the good one was answered with %q (%v)", all, err)
						}
					}
				}
				for {
					n, err := here.Read(buf)
					if all.Write(buf[:n]); err != nil {
						break
					}
				}
				_ = here.Close()
				<-served
				if told != 1 {
					t.Errorf("the server answered %q, and %d records tell of what was no request", all, told)
				}
			})
		}
	}
}
