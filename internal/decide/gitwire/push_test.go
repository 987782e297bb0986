package gitwire_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
)

const capabilities = "report-status-v2 side-band-64k object-format=sha1 agent=git/2.39"

func line(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

func object(letter string) string { return strings.Repeat(letter, 40) }

func command(old, now, ref string) string { return object(old) + " " + object(now) + " " + ref }

const pack = "PACK\x00\x00\x00\x02\x00\x00\x00\x07"

func TestPush(t *testing.T) {
	body := line("shallow "+object("d")) + line(command("a", "b", "refs/heads/main")+"\x00 "+capabilities) +
		line(command("0", "c", "refs/tags/v1")+"\n") + "0000" + pack + "the rest"
	for name, from := range map[string]io.Reader{"whole": strings.NewReader(body), "byte for byte": iotest.OneByteReader(strings.NewReader(body))} {
		p, err := gitwire.ReadPush(from)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := []gitwire.Command{{object("a"), object("b"), "refs/heads/main"}, {object("0"), object("c"), "refs/tags/v1"}}
		if fmt.Sprint(p.Commands) != fmt.Sprint(want) || p.Objects != 7 || p.Commands[0].Creates() || !p.Commands[1].Creates() {
			t.Errorf("%s: it is read as %+v", name, p)
		}
		rest, _ := io.ReadAll(from)
		if string(p.Said)+string(rest) != body {
			t.Errorf("%s: what was said and the rest are not the body", name)
		}
	}
}

func TestPushWithOptions(t *testing.T) {
	body := line(command("a", "0", "refs/heads/old")+"\x00push-options "+capabilities) + "0000" + line("ci.skip") + "0000"
	p, err := gitwire.ReadPush(strings.NewReader(body))
	if err != nil || !p.Commands[0].Deletes() || len(p.Options) != 1 || p.Options[0] != "ci.skip" {
		t.Errorf("it is read as %+v, %v", p, err)
	}
}

// TestNothingPushed: git sends an empty list first, to see whether it is let in.
func TestNothingPushed(t *testing.T) {
	if p, err := gitwire.ReadPush(strings.NewReader("0000")); err != nil || len(p.Commands) != 0 || string(p.Said) != "0000" {
		t.Errorf("it is read as %+v, %v", p, err)
	}
}

func TestDigest(t *testing.T) {
	base := gitwire.Change{Commands: []gitwire.Command{{"a", "b", "refs/heads/main"}, {"c", "d", "refs/heads/x"}}, Objects: 3}
	same := base
	same.Objects = 9 // a pack of the same commits can be made in many ways
	if base.Digest() != same.Digest() || !strings.HasPrefix(base.Digest(), "sha256:") {
		t.Errorf("the digests are %s and %s", base.Digest(), same.Digest())
	}
	for name, other := range map[string]gitwire.Change{
		"another object": {Commands: []gitwire.Command{{"a", "e", "refs/heads/main"}, {"c", "d", "refs/heads/x"}}},
		"another old":    {Commands: []gitwire.Command{{"0", "b", "refs/heads/main"}, {"c", "d", "refs/heads/x"}}},
		"another ref":    {Commands: []gitwire.Command{{"a", "b", "refs/heads/main"}, {"c", "d", "refs/heads/y"}}},
		"one fewer":      {Commands: base.Commands[:1]},
		"an option":      {Commands: base.Commands, Options: []string{"ci.skip"}},
	} {
		if other.Digest() == base.Digest() {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}

func TestMalformedPush(t *testing.T) {
	first := func(ref string) string { return line(command("a", "b", ref) + "\x00" + capabilities) }
	var many strings.Builder
	many.WriteString(first("refs/heads/first"))
	for i := range gitwire.MaxCommands {
		many.WriteString(line(command("a", "b", fmt.Sprintf("refs/heads/%d", i))))
	}
	for name, body := range map[string]string{
		"nothing":              "",
		"no flush":             first("refs/heads/main"),
		"no pack":              first("refs/heads/main") + "0000",
		"half a pack":          first("refs/heads/main") + "0000PACK",
		"no pack but a text":   first("refs/heads/main") + "0000" + strings.Repeat("x", 12),
		"objects alone":        "0000" + pack,
		"a length of one":      "0001",
		"a length of four":     "0004",
		"a sign":               "+00f",
		"not a length":         "zzzz",
		"a ref twice":          first("refs/heads/main") + line(command("a", "c", "refs/heads/main")) + "0000" + pack,
		"no ref":               first("HEAD") + "0000" + pack,
		"a hidden letter":      first("refs/heads/ma\u200bin") + "0000" + pack,
		"a turned text":        first("refs/heads/\u202emain") + "0000" + pack,
		"a control":            first("refs/heads/\x1b[2J") + "0000" + pack,
		"dots":                 first("refs/heads/../main") + "0000" + pack,
		"a long ref":           first("refs/heads/"+strings.Repeat("x", 200)) + "0000" + pack,
		"a short object":       line("a b refs/heads/main\x00"+capabilities) + "0000" + pack,
		"capabilities again":   first("refs/heads/a") + first("refs/heads/b") + "0000" + pack,
		"shallow at the end":   first("refs/heads/a") + line("shallow "+object("a")) + "0000" + pack,
		"too many refs":        many.String() + "0000" + pack,
		"two kinds of objects": first("refs/heads/a") + line(strings.Repeat("a", 64)+" "+strings.Repeat("b", 64)+" refs/heads/b") + "0000" + pack,
		"a wide space":         first("refs/heads/ma\u00a0in") + "0000" + pack,
		"other magic":          first("refs/heads/main") + "0000XACK" + pack[4:],
		"another version":      first("refs/heads/main") + "0000PACK\x00\x00\x00\x04\x00\x00\x00\x07",
		"too long":             strings.Repeat(line("shallow "+object("a")), 2_000) + first("refs/heads/main") + "0000" + pack,
		"many options":         line(command("a", "b", "refs/heads/main")+"\x00push-options") + "0000" + strings.Repeat(line("x"), 11) + "0000" + pack,
		"a long option":        line(command("a", "b", "refs/heads/main")+"\x00push-options") + "0000" + line(strings.Repeat("x", 201)) + "0000" + pack,
		"an empty option":      line(command("a", "b", "refs/heads/main")+"\x00push-options") + "0000" + "0004" + "0000" + pack,
		"an option that hides": line(command("a", "b", "refs/heads/main")+"\x00push-options") + "0000" + line("a\x1b") + "0000" + pack,
	} {
		p, err := gitwire.ReadPush(strings.NewReader(body))
		if _, is := errors.AsType[*gitwire.Malformed](err); !is {
			t.Errorf("%s: it is read as %+v, %v", name, p, err)
		}
	}
}

// TestASignedPush is refused as one: what it changes stands where nobody is shown it.
func TestASignedPush(t *testing.T) {
	_, err := gitwire.ReadPush(strings.NewReader(line("push-cert\x00"+capabilities) + "0000" + pack))
	if unread, is := errors.AsType[*gitwire.Malformed](err); !is || !strings.Contains(unread.What, "push without --signed") {
		t.Error(err)
	}
}

// TestRefusal: the answer is lines of git's, with the sentence in the band that its client
// prints, and each ref in the report.
func TestRefusal(t *testing.T) {
	p, err := gitwire.ReadPush(strings.NewReader(line(command("a", "b", "refs/heads/main")+"\x00"+capabilities) + "0000" + pack))
	if err != nil {
		t.Fatal(err)
	}
	answer := string(p.Refusal("a person\nhas to say yes", "waits"))
	report := line("unpack ok\n") + line("ng refs/heads/main waits\n") + "0000"
	if want := line("\x02a person has to say yes\n") + line("\x01"+report) + "0000"; answer != want {
		t.Errorf("the answer is %q", answer)
	}
	two, err := gitwire.ReadPush(strings.NewReader(line(command("a", "b", "refs/heads/main")+"\x00report-status") + line(command("a", "b", "refs/heads/x")) + "0000" + pack))
	if err != nil {
		t.Fatal(err)
	}
	if answer := string(two.Refusal("no", "")); answer != line("unpack ok\n")+line("ng refs/heads/main no\n")+line("ng refs/heads/x no\n")+"0000" {
		t.Errorf("of two refs the answer is %q", answer)
	}
	old, err := gitwire.ReadPush(strings.NewReader(line(command("a", "b", "refs/heads/main")+"\x00report-status") + "0000" + pack))
	if err != nil {
		t.Fatal(err)
	}
	if answer := string(old.Refusal("a sentence", "waits")); answer != line("unpack ok\n")+line("ng refs/heads/main a sentence\n")+"0000" {
		t.Errorf("without bands the answer is %q", answer)
	}
	long := p.Refusal(strings.Repeat("ä", 3_000), "waits")
	for len(long) > 4 {
		n := 0
		if _, err := fmt.Sscanf(string(long[:4]), "%04x", &n); err != nil || n > 1_000 || n > len(long) {
			t.Fatalf("a line of a long sentence has %d bytes: %v", n, err)
		}
		long = long[n:]
	}
}

// FuzzReadPush: whatever comes, it is read whole or refused, with what was said kept, in
// bounded memory; and what is shown is what is said.
func FuzzReadPush(f *testing.F) {
	f.Add([]byte(line(command("a", "b", "refs/heads/main")+"\x00push-options "+capabilities) + "0000" + line("x") + "0000" + pack))
	f.Add([]byte("0000"))
	f.Fuzz(func(t *testing.T, body []byte) {
		from := bytes.NewReader(body)
		p, err := gitwire.ReadPush(from)
		rest, _ := io.ReadAll(from)
		if !bytes.Equal(append(bytes.Clone(p.Said), rest...), body) {
			t.Fatal("what was said and the rest are not the body")
		}
		if err != nil {
			return
		}
		for _, c := range p.Commands {
			if !bytes.Contains(p.Said, []byte(c.Old+" "+c.New+" "+c.Ref)) {
				t.Fatalf("nobody said %+v", c)
			}
		}
		if len(p.Refusal("sentence", "reason")) > 1<<20 || len(p.Commands) > gitwire.MaxCommands {
			t.Fatal("it is not bounded")
		}
	})
}

// FuzzRead: what is passed on is written as git writes it, so that nobody reads another
// thing out of it.
func FuzzRead(f *testing.F) {
	f.Add("POST", "/acme/app.git/git-receive-pack", "")
	f.Add("GET", "/acme/%61pp/info/refs", "service=git-upload-pack")
	f.Fuzz(func(t *testing.T, method, path, query string) {
		r, found, wrong := gitwire.Read(method, path, query)
		if !found {
			for _, service := range []string{"/git-receive-pack", "/git-upload-pack", "/info/refs"} {
				if strings.Contains(strings.ToLower(path), service) && !strings.Contains(strings.ToLower(path), service+"s") && strings.HasSuffix(strings.ToLower(path), service) {
					t.Fatalf("%q is none of git's", path)
				}
			}
			return
		}
		if wrong != "" {
			return
		}
		service := map[gitwire.Operation]string{gitwire.Fetch: "git-upload-pack", gitwire.Push: "git-receive-pack"}[r.Operation]
		end, asked := "/info/refs", "service="+service
		if r.Carries {
			end, asked = "/"+service, ""
		}
		if (path != "/"+r.Repository+end && path != "/"+r.Repository+".git"+end) || query != asked {
			t.Fatalf("%q?%q is %+v", path, query, r)
		}
	})
}
