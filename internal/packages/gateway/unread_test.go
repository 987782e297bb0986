package gateway_test

import (
	"testing"
)

// TestWhatIsNoRequestToARegistryIsOnRecordBehindOne: what the server answers by itself is on record, also if a
// good request came before it on the connection.
func TestWhatIsNoRequestToARegistryIsOnRecordBehindOne(t *testing.T) {
	const bad = "GET /simple/foo/ HTTP/9.9\r\nHost: " + indexHost + "\r\n\r\n"
	for when, c := range map[string]struct {
		before  string
		answers int
		records int
	}{
		"alone":  {"", 1, 1},
		"behind": {"PATCH /simple/foo/ HTTP/1.1\r\nHost: " + indexHost + "\r\n\r\n", 2, 2}, // which is refused, and on record as that
	} {
		t.Run(when, func(t *testing.T) {
			b := newBench(t, nil)
			answers := b.pipeline(indexHost, c.before+bad, c.answers)
			if last := answers[len(answers)-1]; last.StatusCode != 505 {
				t.Fatalf("INCONCLUSIVE: it was answered with %s", status(last))
			}
			b.eventually("all that was refused is on record", func() bool { return len(b.door.Failures()) == c.records })
		})
	}
}
