package dlp_test

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/personal"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
)

func all() *dlp.Set { return dlp.NewSet(append(secrets.Rules(), personal.Rules()...)...) }

var redacting = dlp.Plan{Secrets: dlp.Redact, Personal: dlp.Redact}

const (
	awsKey  = "AKIA" + "Q2W3E4R5T6Y7U2I3"
	gitlab  = "glpat-" + "aB3dE6gH9kaB3dE6gH9k"
	armour  = "-----BEGIN " + "EC PRIVATE KEY-----\nMHcCAQEEIODY3Q2xWjNtZ7h8bW9uZXlpc25vdGhpbmdoZXJlYXRh\nbGxvAoGCCqGSM49\n-----END " + "EC PRIVATE KEY-----"
	mail    = "ada.lovelace@mail.host.org"
	payment = "4242 4242 4242 4242"
)

func text() string {
	return "id " + awsKey + "\n" + gitlab + gitlab[:9] + "\n" + armour + "\nsk-ant-, ghp_ and eyJ begin, AKIA\n" + mail + ", " + payment + ".\nASIA" + awsKey + "\n-----BEGIN x"
}

// through sends pieces through a scanner.
func through(set *dlp.Set, p dlp.Plan, pieces ...string) (string, []dlp.Finding) {
	s := set.Scanner(p)
	var out bytes.Buffer
	var found []dlp.Finding
	for _, piece := range pieces {
		o, f := s.Write([]byte(piece))
		out.Write(o)
		found = append(found, f...)
	}
	o, f := s.Close()
	out.Write(o)
	return out.String(), append(found, f...)
}

func places(found []dlp.Finding) []dlp.Finding {
	found = slices.Clone(found)
	for i := range found {
		found[i].Late = false
	}
	return found
}

// TestWhatIsFound: a finding says where and how long, and nothing of the value stays.
func TestWhatIsFound(t *testing.T) {
	whole := text()
	out, found := through(all(), redacting, whole)
	want := whole
	for _, v := range []string{armour, awsKey, mail, payment} {
		want = strings.Replace(want, v, strings.Repeat("*", len(v)), 1)
	}
	if want = strings.Replace(want, gitlab+gitlab[:9], strings.Repeat("*", len(gitlab)+9), 1); out != want {
		t.Errorf("out:\n%s\nwant:\n%s", out, want)
	}
	var rules []string
	for _, f := range found {
		rules = append(rules, f.Rule)
		if f.Sum != sha256.Sum256([]byte(whole[f.At:f.At+int64(f.Length)])) || f.Late || f.Outcome != dlp.Redact {
			t.Errorf("%+v", f)
		}
	}
	if want := []string{"aws-access-key-id", "gitlab-token", "private-key", "email", "payment-card"}; !slices.Equal(rules, want) {
		t.Errorf("found %v, want %v", rules, want)
	}
}

// TestBorders: it does not matter in which pieces the bytes come.
func TestBorders(t *testing.T) {
	set, whole := all(), text()
	for _, p := range []dlp.Plan{redacting, {Secrets: dlp.Report, Personal: dlp.Report}, {Secrets: dlp.Redact}, {Secrets: dlp.Report, Personal: dlp.Redact}, {Personal: dlp.Block}, {Secrets: dlp.Block, Personal: dlp.Report}} {
		want, wanted := through(set, p, whole)
		same := func(how any, pieces ...string) {
			t.Helper()
			if got, found := through(set, p, pieces...); got != want || !slices.Equal(places(found), wanted) {
				t.Errorf("%+v, cut %v: %q, %+v", p, how, got, found)
			}
		}
		for i := range len(whole) {
			same(i, whole[:i], whole[i:])
			same([]int{i, i + 1}, whole[:i], whole[i:i+1], whole[i+1:])
		}
		same("bytes", strings.Split(whole, "")...)
	}
}

// TestKnown: a value that is known, or that has a known one in it, is no finding, and stays
// as it is; the one behind it is found.
func TestKnown(t *testing.T) {
	const other = "glpat-" + "zZ9yY8xX7wW6vV5uU4tT"
	for _, known := range []string{gitlab, gitlab + "/long", gitlab[:20]} {
		text := "a " + gitlab + " b " + other + "/long"
		s := all().Scanner(redacting, known)
		out, found := s.Write([]byte(text))
		clean := string(out)
		out, more := s.Close()
		clean, found = clean+string(out), append(found, more...)
		if want := strings.Replace(text, other, strings.Repeat("*", len(other)), 1); clean != want || len(found) != 1 {
			t.Errorf("%q: %q, %+v", known, clean, found)
		}
	}
}

// TestReleased: what waits can be let out at any time. The value that it began is found all the
// same, and masked as far as it has not gone.
func TestReleased(t *testing.T) {
	set, whole := all(), text()
	_, wanted := through(set, redacting, whole)
	for i := range len(whole) {
		s := set.Scanner(redacting)
		var out bytes.Buffer
		o, found := s.Write([]byte(whole[:i]))
		out.Write(o)
		out.Write(s.Release())
		if s.Patience() != 0 {
			t.Fatalf("cut at %d: something waits after Release", i)
		}
		o, f := s.Write([]byte(whole[i:]))
		out.Write(o)
		found = append(found, f...)
		o, f = s.Close()
		out.Write(o)
		found = append(found, f...)
		if !slices.Equal(places(found), wanted) {
			t.Fatalf("cut at %d: %+v", i, found)
		}
		want := []byte(whole)
		for _, f := range found {
			from := f.At
			switch {
			case f.Late:
				from = int64(i)
			case f.At < int64(i) && int64(i) < f.At+int64(f.Length):
				t.Errorf("cut at %d: some had gone of %+v", i, f)
			}
			if f.Late && f.At >= int64(i) {
				t.Errorf("cut at %d: nothing had gone of %+v", i, f)
			}
			for at := from; at < f.At+int64(f.Length); at++ {
				want[at] = dlp.Mask
			}
		}
		if out.String() != string(want) {
			t.Fatalf("cut at %d: %q, want %q", i, out.String(), want)
		}
	}
}

func TestBlock(t *testing.T) {
	s := all().Scanner(dlp.Plan{Secrets: dlp.Block, Personal: dlp.Report})
	out, found := s.Write([]byte(mail + " and " + gitlab + " and more"))
	if string(out) != mail+" and " || len(found) != 2 || found[1].Outcome != dlp.Block || !s.Blocked() || s.Patience() != 0 {
		t.Errorf("%q, %+v", out, found)
	}
	if out, found := s.Write([]byte("more")); len(out)+len(found)+len(s.Release()) != 0 {
		t.Errorf("after the block: %q, %+v", out, found)
	}
	if out, found := s.Close(); len(out)+len(found) != 0 {
		t.Errorf("at the end: %q, %+v", out, found)
	}
}

// TestPatience: only what may be the beginning of something waits.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		plan dlp.Plan
		text string
		out  int
		wait time.Duration
	}{
		{dlp.Plan{}, "glpat-", 6, 0},
		{dlp.Plan{Secrets: dlp.Report}, "glpat-", 6, 0},
		{dlp.Plan{Secrets: dlp.Redact}, "a line\n", 7, 0},
		{dlp.Plan{Secrets: dlp.Redact}, "word g", 5, dlp.ShortPatience},
		{dlp.Plan{Secrets: dlp.Redact}, "word glp", 5, dlp.ShortPatience},
		{dlp.Plan{Secrets: dlp.Redact}, "word glpat-abc", 5, dlp.LongPatience},
		{dlp.Plan{Secrets: dlp.Redact}, "word glpat-abc ", 15, 0},
		{dlp.Plan{Personal: dlp.Redact}, "to word", 3, dlp.ShortPatience},
	} {
		s := all().Scanner(c.plan)
		if out, _ := s.Write([]byte(c.text)); len(out) != c.out || s.Patience() != c.wait {
			t.Errorf("%+v %q: %q goes, the rest waits %s", c.plan, c.text, out, s.Patience())
		}
	}
}

// TestBounded: no text makes a scanner keep more than its longest value.
func TestBounded(t *testing.T) {
	const most = 17 << 10
	for _, piece := range []string{"a", "eyJ", "eyJ.", "glpat-", armour[:30], "-----BEGIN ", "1 ", "a@", "A1", "+1 ", "://a:", "ghp_Z2hwX"} {
		s := all().Scanner(redacting)
		in, out := 0, 0
		chunk := []byte(strings.Repeat(piece, 4096/len(piece)))
		for range 100 {
			o, _ := s.Write(chunk)
			in, out = in+len(chunk), out+len(o)
			if in-out > most {
				t.Fatalf("%q: %d bytes wait", piece, in-out)
			}
		}
	}
}

// FuzzScanner: pieces do not matter, lengths stay, and what is masked is what was found.
func FuzzScanner(f *testing.F) {
	f.Add([]byte(text()), uint64(1))
	f.Add([]byte(strings.Repeat("eyJ", 300)+gitlab), uint64(2))
	f.Add([]byte(strings.Repeat("-----BEGIN "+"PRIVATE KEY-----", 40)+armour), uint64(3))
	set := all()
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		want, wanted := through(set, redacting, string(data))
		r := rand.New(rand.NewPCG(seed, 0))
		var pieces []string
		for rest := string(data); rest != ""; {
			n := 1 + r.IntN(min(len(rest), 60))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got, found := through(set, redacting, pieces...)
		if got != want || !slices.Equal(found, wanted) {
			t.Fatalf("in pieces %q, %+v; whole %q, %+v", got, found, want, wanted)
		}
		masked := slices.Clone(data)
		for _, f := range found {
			for i := range f.Length {
				masked[f.At+int64(i)] = dlp.Mask
			}
		}
		if got != string(masked) {
			t.Fatalf("%q is not %q with the findings masked", got, masked)
		}
	})
}

func BenchmarkScanner(b *testing.B) {
	line := "2026-01-02T03:04:05Z INFO request id=8f3a method=GET path=/a/b/c status=200 took=12ms sha256=0f1e2d3c4b5a69788796a5b4c3d2e1f0\n"
	chunk := []byte(strings.Repeat(line, 32<<10/len(line)))
	for name, p := range map[string]dlp.Plan{"secrets": {Secrets: dlp.Redact}, "both": redacting, "slow": redacting} {
		b.Run(name, func(b *testing.B) {
			data := chunk
			if name == "slow" {
				data = []byte(strings.Repeat("eyJ-----BEGIN "+"PRIVATE KEY-----", 1000))
			}
			s := all().Scanner(p)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				s.Write(data)
			}
		})
	}
}
