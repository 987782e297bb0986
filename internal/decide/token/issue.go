package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// prefix begins every secret: the form that all versions of the clients take.
const prefix = "e2b_"

const (
	secretBytes = 20 // 160 random bits: nobody guesses them, so a plain digest is kept
	idBytes     = 6
)

// Grant is what somebody wants a token to be.
type Grant struct {
	Name    string // [A-Za-z0-9][A-Za-z0-9._@-]{0,62}
	Expires time.Time
	// Lasts, if not 0, is for how long from now, in place of Expires.
	Lasts    time.Duration
	Policy   string // "": DefaultPolicy
	Policies []string
	Quota    Quota
	Admin    bool
}

// DefaultPolicy is the named policy of a token that names none.
const DefaultPolicy = "default"

// Issue makes a token and its secret, "e2b_" and 40 hexadecimal digits, which
// nothing here can tell a second time.
func Issue(now time.Time, g Grant) (Token, string, error) {
	if err := g.checkGrant(now); err != nil {
		return Token{}, "", err
	}
	secret := prefix + random(secretBytes)
	t := Token{
		ID: "tok-" + random(idBytes), Name: g.Name, Created: now.UTC(), Expires: g.Expires, Policy: g.Policy,
		Policies: g.Policies, Quota: g.Quota, Admin: g.Admin, SecretSHA256: digest(secret),
	}
	if t.Policy == "" {
		t.Policy = DefaultPolicy
	}
	return t, secret, nil
}

var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`)

func (g Grant) checkGrant(now time.Time) error {
	if !tokenName.MatchString(g.Name) {
		return fault.Invalid("the token's name %q is not valid: 1 to 63 letters, digits, dots, dashes, underscores and @, the first a letter or digit", g.Name)
	}
	if strings.HasPrefix(g.Name, "tok-") {
		return fault.Invalid("the token's name %q looks like an id; begin it otherwise", g.Name)
	}
	if !g.Expires.IsZero() && !g.Expires.After(now) {
		return fault.Invalid("the token would have expired at %s already", g.Expires.Format(time.RFC3339))
	}
	return g.Quota.check()
}

// No policy can give a sandbox less: a quota below is a number whose unit was forgotten.
const (
	leastBytes = 1 << 20
	leastCPU   = 0.01
)

// check refuses a quota under which no sandbox could be made.
func (q Quota) check() error {
	if q.Sandboxes < 0 || q.CPU < 0 || q.MemoryBytes < 0 || q.DiskBytes < 0 || q.CreatesPerMinute < 0 {
		return fault.Invalid("a quota can't be negative; leave it out for none")
	}
	for _, of := range []struct {
		name  string
		bytes int64
	}{{"memory", q.MemoryBytes}, {"disk", q.DiskBytes}} {
		if of.bytes > 0 && of.bytes < leastBytes {
			return fault.Invalid("the quota's %s is %d bytes, which is less than any sandbox has (1 MiB); it is a number of bytes, or on the command line one with a unit, such as 512MiB or 20GiB", of.name, of.bytes)
		}
	}
	if q.CPU > 0 && q.CPU < leastCPU {
		return fault.Invalid("the quota's CPU is %v cores, which is less than any sandbox has (%v)", q.CPU, leastCPU)
	}
	return nil
}

func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails: it ends the process instead
	return hex.EncodeToString(b)
}

func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
