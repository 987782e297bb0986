package approvaltest

import (
	"fmt"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Pair are two asks that differ in one place, which a person has to see before a yes.
type Pair struct {
	Name   string
	A, B   approval.Ask
	Differ Differ
}

// Differ is in what two asks differ.
type Differ int

// The kinds of a difference. An answer about one of the first two is none about the other.
const (
	Named Differ = iota // every text that names what is asked about differs
	Bound               // the name is the same, and what an answer is bound to differs
	Known               // what is known of it differs, or what is said
)

// Pairs are two of each kind of request, for each place in which two of the kind can differ:
// most in the last byte of the longest text that there can be.
func Pairs() []Pair {
	return append(append(releasePairs(), pushPairs()...), callPairs()...)
}

func asking() approval.Ask {
	return approval.Ask{Run: "run-1", Sandbox: "sb1", Policy: "sha256:p", User: "ann", Rule: "packages.default", Reason: "no list names it"}
}

// newPair makes two asks of one, in which letter is an "a" and a "b".
func newPair(name string, differ Differ, of func(a *approval.Ask, letter string)) Pair {
	p := Pair{Name: name, A: asking(), B: asking(), Differ: differ}
	of(&p.A, "a")
	of(&p.B, "b")
	return p
}

func digest(letter string) string { return "sha256:" + strings.Repeat("0", 63) + letter }

// newVulnerabilities are so many vulnerabilities, of which a version fixes the last.
func newVulnerabilities(n int, fixedIn string) *evidence.Vulnerabilities {
	var all []evidence.Vulnerability
	for i := range n {
		all = append(all, evidence.Vulnerability{ID: fmt.Sprintf("CVE-0000-%d", i), Severity: "high"})
	}
	all[n-1].FixedIn = fixedIn
	return evidence.NewVulnerabilities(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), all)
}

func releasePairs() []Pair {
	release := func(a *approval.Ask) {
		a.Package, a.Upstream = pkgref.Ref{Ecosystem: pkgref.Python, Name: "rich", Version: "13.7.1"}, "https://index.example/simple/"
		a.Files = []approval.File{{Name: "rich-13.7.1-py3-none-any.whl", Kind: "wheel", Digests: []string{digest("1")}}}
	}
	many := func(n int, last string) []string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("finding %d", i))
		}
		return append(list, "the last one "+last)
	}
	return []Pair{
		newPair("a release: its name", Named, func(a *approval.Ask, x string) { release(a); a.Package.Name = strings.Repeat("n", 200) + x }),
		newPair("a release: its version", Named, func(a *approval.Ask, x string) { release(a); a.Package.Version = "13.7.1" + x + "1" }),
		newPair("a release: its index", Bound, func(a *approval.Ask, x string) { release(a); a.Upstream += strings.Repeat("i", 400) + x }),
		newPair("a release: its file's digest", Bound, func(a *approval.Ask, x string) { release(a); a.Files[0].Digests[0] = digest(x) }),
		newPair("a release: its file's name", Bound, func(a *approval.Ask, x string) { release(a); a.Files[0].Name = strings.Repeat("f", 250) + x }),
		newPair("a release: a long finding", Known, func(a *approval.Ask, x string) {
			release(a)
			a.Evidence.Findings = []string{strings.Repeat("x", 400) + x}
		}),
		newPair("a release: a finding that is no UTF-8", Known, func(a *approval.Ask, x string) {
			release(a)
			a.Evidence.Findings = []string{map[string]string{"a": "\xfe", "b": "\xff"}[x]}
		}),
		newPair("a release: the last of many findings", Known, func(a *approval.Ask, x string) { release(a); a.Evidence.Findings = many(80, x) }),
		newPair("a release: the last of many advisories", Known, func(a *approval.Ask, x string) { release(a); a.Evidence.Advisories = many(80, x) }),
		newPair("a release: what fixes a vulnerability", Known, func(a *approval.Ask, x string) {
			release(a)
			a.Evidence.Vulnerabilities = newVulnerabilities(1, "1.0."+x)
		}),
		newPair("a release: the last of many vulnerabilities", Known, func(a *approval.Ask, x string) {
			release(a)
			a.Evidence.Vulnerabilities = newVulnerabilities(80, "1.0."+x)
		}),
		newPair("a release: the last file that it brings", Known, func(a *approval.Ask, x string) {
			release(a)
			a.Evidence.Inside = &evidence.Inside{Native: many(500, x), Files: 501}
		}),
		newPair("a release: why it is wanted", Known, func(a *approval.Ask, x string) { release(a); a.Because = strings.Repeat("b", 3_000) + x }),
		newPair("a release: the task", Known, func(a *approval.Ask, x string) { release(a); a.Task = strings.Repeat("t", 3_000) + x }),
		newPair("a host: its name", Named, func(a *approval.Ask, x string) {
			a.Host = approval.Host{Name: strings.Repeat("h", 240) + x + ".example", Port: 443}
		}),
		newPair("a host: its port", Named, func(a *approval.Ask, x string) {
			a.Host = approval.Host{Name: "api.example", Port: map[string]int{"a": 443, "b": 8443}[x]}
		}),
		newPair("a host: a command of now", Known, func(a *approval.Ask, x string) {
			a.Host = approval.Host{Name: "api.example", Port: 443}
			a.Evidence.Host = &evidence.Host{Commands: []string{strings.Repeat("c", 400) + x}}
		}),
	}
}

func pushPairs() []Pair {
	push := func(a *approval.Ask, x string, refs ...string) {
		a.Host = approval.Host{Name: "git.example", Port: 443, Repository: "acme/app", Push: digest(x)}
		a.Evidence.Host = &evidence.Host{Protocol: "git", Refs: refs, Objects: 7}
	}
	long := strings.Repeat(`\U0001f980`, 45) // the longest ref that there is, as it is shown
	return []Pair{
		newPair("a push: the digest of it", Named, func(a *approval.Ask, x string) { push(a, x, "refs/heads/main: new") }),
		newPair("a push: its repository", Named, func(a *approval.Ask, x string) {
			push(a, "0", "refs/heads/main: new")
			a.Host.Repository = strings.Repeat("r", 499) + x
		}),
		newPair("a push: the object of a long ref", Named, func(a *approval.Ask, x string) {
			push(a, x, "refs/"+long+": "+strings.Repeat("0", 64)+" -> "+strings.Repeat("1", 63)+x)
		}),
		newPair("a push: the object of the last ref", Named, func(a *approval.Ask, x string) {
			var refs []string
			for i := range 49 {
				refs = append(refs, fmt.Sprintf("refs/%s%d: %s -> %s", long, i, strings.Repeat("0", 64), strings.Repeat("1", 64)))
			}
			push(a, x, append(refs, "refs/heads/main: "+strings.Repeat("0", 64)+" -> "+strings.Repeat("1", 63)+x)...)
		}),
		newPair("a push: an option", Named, func(a *approval.Ask, x string) {
			push(a, x, "refs/heads/main: new")
			a.Evidence.Host.Options = []string{strings.Repeat("o", 600) + x}
		}),
	}
}

func callPairs() []Pair {
	call := func(a *approval.Ask, arguments string) {
		a.Call = approval.Call{Tool: "refund", Source: approval.SourceHost, Definition: digest("0"), Digest: approval.DigestOf(arguments), Arguments: arguments}
	}
	return []Pair{
		newPair("a call: its tool", Named, func(a *approval.Ask, x string) { call(a, `{}`); a.Call.Tool = strings.Repeat("t", 63) + x }),
		newPair("a call: its arguments", Named, func(a *approval.Ask, x string) {
			call(a, `{"a":"`+strings.Repeat("x", approval.MaxCallArguments-20)+x+`"}`)
		}),
		newPair("a call: whose tool it is", Named, func(a *approval.Ask, x string) {
			call(a, `{}`)
			a.Call.Source = map[string]string{"a": approval.SourceHost, "b": approval.SourceSandbox("sb1")}[x]
		}),
		newPair("a call: the tool's definition", Named, func(a *approval.Ask, x string) { call(a, `{}`); a.Call.Definition = digest(x) }),
		newPair("a call: the tool's description", Known, func(a *approval.Ask, x string) {
			call(a, `{}`)
			a.Evidence.Call = &evidence.Call{Description: strings.Repeat("d", 1_000) + x}
		}),
	}
}
