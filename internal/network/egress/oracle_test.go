package egress_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/credentials"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// otherHostDoor has a run with a secret for some other host than the one that it connects to.
type otherHostDoor struct {
	door.Door
	value string
}

func (otherHostDoor) Credentials(context.Context, door.CredentialsAsk) (door.CredentialsAnswer, error) {
	return door.CredentialsAnswer{Placeholders: map[string]string{"bot": theFake}, Seek: true}, nil
}

func (d otherHostDoor) Secrets(context.Context, door.SecretsAsk) (door.SecretsAnswer, error) {
	return door.SecretsAnswer{Values: map[string]string{}, Others: map[string][]string{"bot": {d.value}}}, nil
}

func (otherHostDoor) Declined(context.Context, door.DeclinedAsk) error { return nil }

// TestAHostThatGuesses: a host that gets no secret sends what its client inside asks for, and then
// waits. The part of it that arrives at once tells nothing of the run's secret for another host. It
// does not matter who guesses: any host that sends a client's words back while it goes on does for
// it.
func TestAHostThatGuesses(t *testing.T) {
	const secret = "sk-Zq81xKf0TwLm33pQ9vB7"
	const letters = "AzZq-" // of which one goes on with the secret at each of the first places
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		for name, seek := range map[string]bool{"with the secret": true, "the control": false} {
			heard := make(chan bool)
			e := endLimited(t, egress.Limits{Connects: 10_000, Opens: 10_000}, judgedDocument, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "."+r.URL.Query().Get("say"))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-heard:
				case <-r.Context().Done():
				}
			}), "api.example")
			if seek {
				x, err := credentials.Exchanges{Door: otherHostDoor{value: secret}}.Exchange(t.Context(), requests.Connection{Sandbox: "sb-1", Name: "api.example", Port: 443, TLS: true})
				if err != nil {
					t.Fatal(err)
				}
				e.door.exchange = x
			}
			c := e.client(t, http2)
			waits := func(guess string) bool {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/good/a?"+url.Values{"say": {guess}}.Encode(), nil)
				if err != nil {
					t.Fatal(err)
				}
				a, err := c.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer a.Body.Close()
				first := make([]byte, 1_000)
				n, err := a.Body.Read(first)
				if err != nil {
					t.Fatal(err)
				}
				heard <- true
				rest, _ := io.ReadAll(a.Body)
				if whole := string(first[:n]) + string(rest); len(whole) != 1+len(guess) {
					t.Fatalf("%q came whole as %q", guess, whole)
				}
				return n == 1
			}
			known, guesses := "sk-", 0
			for grown := true; grown && len(known) < len(secret); {
				grown = false
				for _, letter := range letters {
					guesses++
					if guess := known + string(letter); waits(guess) {
						known, grown = guess, true
						break
					}
				}
			}
			t.Logf("%s: after %d guesses the sandbox knows %q", name, guesses, known)
			if len(known) > len("sk-") && strings.HasPrefix(secret, known) {
				t.Errorf("%s, HTTP/2 %v: the sandbox has found out %d letters of the secret: %s", name, http2, len(known), known)
			}
		}
	})
}

// TestAGuestThatGuessesAlone: the host only gives back what a client has stored there, in one go. Where an answer's
// pieces end on their way in tells nothing of the run's secret: else a client that puts its guesses where a piece
// ends sees by the size of the pieces which of them is the beginning of a secret.
func TestAGuestThatGuessesAlone(t *testing.T) {
	const secret = "sk-Zq81xKf0TwLm33pQ9vB7"
	const letters = "AzZq-"
	const size = 70_000
	for name, seek := range map[string]bool{"with the secret": true, "the control": false} {
		var kept atomic.Value // what the client has stored there before
		e := endLimited(t, egress.Limits{Connects: 10_000, Opens: 10_000}, judgedDocument, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, kept.Load().(string))
		}), "api.example")
		if seek {
			x, err := credentials.Exchanges{Door: otherHostDoor{value: secret}}.Exchange(t.Context(), requests.Connection{Sandbox: "sb-1", Name: "api.example", Port: 443, TLS: true})
			if err != nil {
				t.Fatal(err)
			}
			e.door.exchange = x
		}
		conn := e.raw(t)
		defer conn.Close()
		answers := bufio.NewReader(conn)
		ends := func(stored string) []int { // of the pieces in which it comes back
			t.Helper()
			kept.Store(stored)
			if _, err := io.WriteString(conn, "GET /good/a HTTP/1.1\r\nHost: api.example\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			chunked := false
			for {
				line, err := answers.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				chunked = chunked || strings.EqualFold(strings.TrimSpace(line), "Transfer-Encoding: chunked")
				if line == "\r\n" {
					break
				}
			}
			if !chunked {
				t.Fatal("the answer does not come in pieces")
			}
			var all []int
			for at := 0; ; {
				line, err := answers.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				n, err := strconv.ParseInt(strings.TrimSpace(line), 16, 32)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := answers.Discard(int(n) + len("\r\n")); err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					return all
				}
				at += int(n)
				all = append(all, at)
			}
		}
		usual := ends(strings.Repeat(".", size))
		if len(usual) < 2 || usual[len(usual)-1] != size {
			t.Fatalf("the pieces end at %v", usual)
		}
		end := usual[0]
		known, guesses := "sk-", 0
		for grown := true; grown && len(known) < len(secret)-1; {
			grown = false
			for _, letter := range letters {
				guesses++
				guess := known + string(letter)
				got := ends(strings.Repeat(".", end-len(guess)) + guess + strings.Repeat(".", size-end))
				if slices.Contains(got, end-len(guess)) && !slices.Contains(got, end) {
					known, grown = guess, true
					break
				}
			}
		}
		t.Logf("%s: after %d guesses the sandbox knows %q", name, guesses, known)
		if len(known) > len("sk-") && strings.HasPrefix(secret, known) {
			t.Errorf("%s: the sandbox has found out %d letters of the secret: %s", name, len(known), known)
		}
	}
}
