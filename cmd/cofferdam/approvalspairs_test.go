package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
)

// filed is a request as the command reads it from the daemon.
func filed(t *testing.T, ask approval.Ask) approval.Request {
	t.Helper()
	q, err := approval.Open(t.Context(), approval.Config{Store: approvaltest.NewMemory(), Log: &approvaltest.Log{}})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	r, err := q.Ask(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	read, err := readRequest(api.Approval(text))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// idsAndTimes are what differs between any two requests.
var idsAndTimes = regexp.MustCompile(`apg?-[a-z0-9]{6}|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d|\d+(ms|s) ago`)

// surfaces are the texts that the command shows of a request.
func surfaces(t *testing.T, r approval.Request) map[string]string {
	t.Helper()
	now := r.Created
	var show, list bytes.Buffer
	if err := showRequest(&show, r, now); err != nil {
		t.Fatal(err)
	}
	if err := writeRequests(&list, []approval.Request{r}, now); err != nil {
		t.Fatal(err)
	}
	f := &answerFlags{state: approval.Approved}
	all := map[string]string{"show": show.String(), "list": list.String(), "approve": f.beforeAsking(r)}
	for name, text := range all {
		all[name] = idsAndTimes.ReplaceAllString(text, "X")
	}
	return all
}

// TestTwoThatDifferAreShownApart: before a yes a person sees whatever an answer is bound to, and
// with "show" whatever is known, though it be cut; two that are equal look the same (the control).
func TestTwoThatDifferAreShownApart(t *testing.T) {
	t.Parallel()
	for _, p := range approvaltest.Pairs() {
		a, again, b := surfaces(t, filed(t, p.A)), surfaces(t, filed(t, p.A)), surfaces(t, filed(t, p.B))
		for name := range a {
			if a[name] != again[name] {
				t.Fatalf("%s: the control: one ask is two in %q:\n%s\n%s", p.Name, name, a[name], again[name])
			}
			if name == "list" && p.Differ != approvaltest.Named || name == "approve" && p.Differ == approvaltest.Known {
				continue // a list has the id beside the name; what is known is for show
			}
			if a[name] == b[name] {
				t.Errorf("%s: %q shows both as\n%.3000s", p.Name, name, a[name])
			}
		}
	}
}

// TestTheWorstIsShownFirst: with how many there are, before the question, too.
func TestTheWorstIsShownFirst(t *testing.T) {
	t.Parallel()
	for _, p := range approvaltest.Pairs() {
		if p.Name != "a release: the last of many findings" {
			continue
		}
		p.A.Evidence.Findings = append([]string{"THE WORST"}, p.A.Evidence.Findings...)
		all := surfaces(t, filed(t, p.A))
		for name, want := range map[string]string{"show": "AND 22 MORE of at least 82", "approve": "AND 72 MORE of at least 82", "list": "82 findings"} {
			if !strings.Contains(all[name], want) || name != "list" && !strings.Contains(all[name], "THE WORST") {
				t.Errorf("%q is not in %s:\n%s", want, name, all[name])
			}
		}
		return
	}
	t.Fatal("there is no such pair")
}

// TestNothingImitatesAnApproval: text of others begins no line, turns none around, hides nothing.
func TestNothingImitatesAnApproval(t *testing.T) {
	t.Parallel()
	imitation := "\n  host            api.example\r\u202e\u2028\x1b[2K\u200b\u00ad"
	ask := approvaltest.Pairs()[0].A
	ask.Task, ask.Because, ask.Reason, ask.PolicyName, ask.Notes = imitation, imitation, imitation, imitation, []string{imitation}
	ask.Evidence.Similar, ask.Evidence.Findings, ask.Evidence.Summary, ask.Evidence.Homepage = imitation, []string{imitation}, imitation, imitation
	r := filed(t, ask)
	r.Created = time.Now()
	for name, text := range surfaces(t, r) {
		if strings.Contains(text, "\n  host ") || strings.ContainsAny(text, "\r\u202e\u2028\x1b\u200b\u00ad") {
			t.Errorf("%s: %q", name, text)
		}
	}
}
