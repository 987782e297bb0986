package policy_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/scan"
)

func TestScanning(t *testing.T) {
	for text, want := range map[string]policy.Scanning{
		"":                                 {},
		"false":                            {},
		"true":                             {Output: scan.Plan{Secrets: scan.Redact}, Files: scan.Plan{Secrets: scan.Report}},
		"{ output: block, files: redact }": {Output: scan.Plan{Secrets: scan.Block}, Files: scan.Plan{Secrets: scan.Redact}},
		"{ output: report, files: off, requests: off, pii: redact }": {Output: scan.Plan{Secrets: scan.Report, Personal: scan.Redact}},
	} {
		document := "name: x\n"
		if text != "" {
			document = "credentials: { secret_scanning: " + text + " }\n"
		}
		if got := policy.ScanningOf(parsed(t, document)); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"maybe":                    "p:1:33: credentials.secret_scanning must be true or false",
		"{ output: hide }":         "p:1:43: credentials.secret_scanning.output must be off, report, redact or block, and is \"hide\"",
		"{ outputs: report }":      "p:1:35: unknown key credentials.secret_scanning.outputs",
		"{ pii: report }":          "p:1:40: credentials.secret_scanning.pii is report, and nothing is scanned: give output or files, too",
		"{ requests: block }":      "p:1:45: credentials.secret_scanning.requests can only be off: the bodies of requests are not scanned yet",
		"{ output: [report] }":     "credentials.secret_scanning.output must be text",
		"{ output: off, pii: on }": "credentials.secret_scanning.pii must be off, report, redact or block",
	} {
		_, err := policy.Parse("p", []byte("credentials: { secret_scanning: "+text+" }\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestScanningIsOnlyMadeStricter: what narrows a policy takes nothing of its scanning back.
func TestScanningIsOnlyMadeStricter(t *testing.T) {
	words := scan.Words()
	for a, one := range words {
		for b, other := range words {
			p := parsed(t, "credentials: { secret_scanning: { output: "+one+", files: report, pii: "+other+" } }\n")
			by := parsed(t, "name: by\ncredentials: { secret_scanning: { output: "+other+" } }\n")
			both, ok := p.NarrowedBy(by)
			got := policy.ScanningOf(both)
			if !ok || got.Output.Secrets != scan.Outcome(max(a, b)) || got.Output.Personal < policy.ScanningOf(p).Output.Personal || got.Files != policy.ScanningOf(p).Files {
				t.Errorf("%s narrowed by %s: %+v", one, other, got)
			}
		}
	}
}
