package doctor

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
)

// safeRunsc is the date of the oldest gVisor known to be without
// CVE-2026-96812 (a root filesystem with a /dev/cuse node reached the host):
// there, character devices are emulated unless asked for otherwise.
const safeRunsc = "20260905"

const rebuildRunsc = "make build, which builds the pinned version"

// versionDate finds the date in v0.0.0-YYYYMMDDhhmmss-... and release-YYYYMMDD.N.
var versionDate = regexp.MustCompile(`(?:release-|-)(20[0-9]{6})(?:[0-9]{6}-|\.)`)

func checkRunsc(ctx context.Context, in Inputs) []Check {
	const name = "runsc"
	if in.Runsc == "" {
		return nil
	}
	info, err := os.Stat(in.Runsc)
	if err != nil {
		return []Check{failCheck(name, rebuildRunsc, "there is no runsc at %s", in.Runsc)}
	}
	if info.Mode().Perm()&0o111 == 0 || !info.Mode().IsRegular() {
		return []Check{failCheck(name, rebuildRunsc, "%s is not a program", in.Runsc)}
	}
	program, err := executable.Hold(in.Runsc, "", in.Writable).Name()
	if err != nil {
		return []Check{failCheck(name, executable.MoveOwn, "%s", errorSentence(err))}
	}
	version, err := runscVersion(ctx, program)
	if err != nil {
		return []Check{failCheck(name, rebuildRunsc, "%s does not start: %v", in.Runsc, err)}
	}
	date := versionDate.FindStringSubmatch(version)
	switch {
	case date == nil:
		return []Check{warnCheck(name, rebuildRunsc, "%s does not say which version it is, so known flaws cannot be excluded", in.Runsc)}
	case date[1] < safeRunsc:
		return []Check{failCheck(name, rebuildRunsc, "%s is gVisor of %s, which may have CVE-2026-96812; %s and later do not", in.Runsc, date[1], safeRunsc)}
	}
	return []Check{okCheck(name, "gVisor of %s at %s", date[1], in.Runsc)}
}

// runscVersion starts runsc, and returns the version of the module that it was
// built from, else what it says about itself.
func runscVersion(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, firstLine(string(out)))
	}
	if build, err := buildinfo.ReadFile(path); err == nil {
		for _, module := range append(build.Deps, &build.Main) {
			if module.Path == "gvisor.dev/gvisor" && versionDate.MatchString(module.Version) {
				return module.Version, nil
			}
		}
	}
	return firstLine(string(out)), nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
