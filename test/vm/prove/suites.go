//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// notHere are tests that are not asked for: TestSpeed measures, and judges nothing;
// TestRootless is the whole suite of gVisor twice more, which only a build with the tag long
// has. A check of its own tells what a normal user can do here.
const notHere = "^(TestSpeed|TestRootless)$"

// suite runs the tests of a package, compiled on the host, in the place that the package
// has in the repository: they look for programs by paths from there. One that hangs tells
// after some minutes of the guest's time where.
func suite(folder string) check {
	return func(ctx context.Context) (string, error) {
		cmd := exec.CommandContext(ctx, "./suite.test", "-test.v", "-test.count=1", "-test.timeout=80m", "-test.skip="+notHere)
		cmd.Dir = filepath.Join(payload, folder)
		cmd.Env = append(os.Environ(), "COFFERDAM_TEST_AGENT="+filepath.Join(payload, "bin/cofferdam-guest"))
		var out bytes.Buffer
		both := io.MultiWriter(&out, os.Stdout) // the console has it at once
		cmd.Stdout, cmd.Stderr = both, both
		err := cmd.Run()
		return judgeSuite(out.String(), err)
	}
}

// outcome is a test's last line.
var outcome = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)`)

// judgeSuite wants each test to have run and passed: one that is skipped proves nothing.
func judgeSuite(out string, code error) (string, error) {
	passed := 0
	var others []string
	for _, m := range outcome.FindAllStringSubmatch(out, -1) {
		if m[1] == "PASS" {
			passed++
		} else {
			others = append(others, m[1]+" "+m[2])
		}
	}
	switch {
	case code != nil || len(others) > 0:
		return "", errors.Join(code, fmt.Errorf("%d tests passed, not these: %s\n%s", passed, strings.Join(others, ", "), withoutPassed(out)))
	case passed == 0:
		return "", errors.New("no test ran")
	case !strings.HasSuffix(strings.TrimSpace(out), "\nPASS"):
		return "", fmt.Errorf("its last line does not say that it passed:\n%s", out)
	}
	return fmt.Sprintf("%d tests passed, none was skipped", passed), nil
}

// withoutPassed leaves out the lines that say only that a test began or passed.
func withoutPassed(out string) string {
	var rest strings.Builder
	for line := range strings.Lines(out) {
		trimmed := strings.TrimSpace(line)
		if !strings.HasPrefix(trimmed, "=== ") && !strings.HasPrefix(trimmed, "--- PASS") {
			rest.WriteString(line)
		}
	}
	return rest.String()
}
