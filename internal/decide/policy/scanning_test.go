package policy_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

func TestScanning(t *testing.T) {
	for text, want := range map[string]policy.Scanning{
		"":                                 {},
		"false":                            {},
		"true":                             {Output: dlp.Plan{Secrets: dlp.Redact}, Files: dlp.Plan{Secrets: dlp.Report}, Requests: dlp.Plan{Secrets: dlp.Report}},
		"{ output: block, files: redact }": {Output: dlp.Plan{Secrets: dlp.Block}, Files: dlp.Plan{Secrets: dlp.Redact}},
		"{ output: report, files: off, requests: off, pii: redact }": {Output: dlp.Plan{Secrets: dlp.Report, Personal: dlp.Redact}},
		"{ requests: block, pii: report }":                           {Requests: dlp.Plan{Secrets: dlp.Block, Personal: dlp.Report}},
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
		"{ pii: report }":          "p:1:40: credentials.secret_scanning.pii is report, and nothing is scanned: give output, files or requests, too",
		"{ requests: maybe }":      "p:1:45: credentials.secret_scanning.requests must be off, report, redact or block, and is \"maybe\"",
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
	words := dlp.Words()
	for a, one := range words {
		for b, other := range words {
			p := parsed(t, "credentials: { secret_scanning: { output: "+one+", files: report, pii: "+other+" } }\n")
			by := parsed(t, "name: by\ncredentials: { secret_scanning: { output: "+other+" } }\n")
			both, ok := p.NarrowedBy(by)
			got := policy.ScanningOf(both)
			if !ok || got.Output.Secrets != dlp.Outcome(max(a, b)) || got.Output.Personal < policy.ScanningOf(p).Output.Personal || got.Files != policy.ScanningOf(p).Files {
				t.Errorf("%s narrowed by %s: %+v", one, other, got)
			}
		}
	}
}

// TestScanningThatOnlyObserves: nothing is redacted or blocked by a document that only
// observes; one that narrows it and does not is obeyed.
func TestScanningThatOnlyObserves(t *testing.T) {
	p := parsed(t, "mode: observe\ncredentials: { secret_scanning: { output: redact, files: block, requests: block, pii: block } }\n")
	report := dlp.Plan{Secrets: dlp.Report, Personal: dlp.Report}
	if got := policy.ScanningOf(p); got != (policy.Scanning{Output: report, Files: report, Requests: report}) {
		t.Errorf("%+v", got)
	}
	if got := policy.ScanningMeant(p); got.Output != (dlp.Plan{Secrets: dlp.Redact, Personal: dlp.Block}) || got.Requests.Secrets != dlp.Block {
		t.Errorf("%+v", got)
	}
	both, ok := p.NarrowedBy(parsed(t, "name: by\ncredentials: { secret_scanning: { files: redact } }\n"))
	if got := policy.ScanningOf(both); !ok || got.Files.Secrets != dlp.Redact || got.Files.Personal != dlp.Report || got.Requests.Secrets != dlp.Report {
		t.Errorf("%+v", got)
	}
}

// TestUnseenHosts: a document that asks for what can't be looked into is told so, with the
// place of the key.
func TestUnseenHosts(t *testing.T) {
	const list = "network_allowlist: [plain.example, \"only.example:80\", \"*.wild.example:8443\", { host: judged.example, methods: [GET] }, given.example]\n" +
		"credentials:\n  inject: [{ host: given.example, secret: one }]\n"
	for text, want := range map[string]string{
		list + "  secret_scanning: { requests: report }\n":                                "credentials.secret_scanning.requests (line 4, column 22): what is sent by TLS to plain.example, *.wild.example:8443 is not seen,",
		list + "  secret_scanning: true\n":                                                "credentials.secret_scanning (line 4, column 3): what is sent by TLS to plain.example, *.wild.example:8443 is not seen,",
		list + "  secret_scanning: { output: block }\n":                                   "",
		"network_unlisted: hold\ncredentials: { secret_scanning: { requests: block } }\n": "(line 2, column 35): what is sent by TLS to hosts that a person opens is not seen,",
		"network_allowlist: [a.example, b.example, c.example, d.example, e.example, f.example, g.example]\ncredentials: { secret_scanning: { requests: block } }\n": "to a.example, b.example, c.example, d.example, e.example, 2 more hosts is not seen,",
		"network_allowlist: [{ host: judged.example, paths: [\"/**\"] }]\ncredentials: { secret_scanning: { requests: block } }\n":                                  "",
	} {
		notes := strings.Join(parsed(t, text).Notes(), "\n")
		if want == "" && notes != "" || !strings.Contains(notes, want) {
			t.Errorf("%s\n%q, want %q", text, notes, want)
		}
	}
}
