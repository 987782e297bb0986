package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// delegateHint is how a user gets limits without root.
const delegateHint = "start it with `systemd-run --user --scope -p Delegate=yes`, or run the daemon as root"

// unified is the prepared version 2 hierarchy.
type unified struct {
	parent  string
	enabled []string // controllers on in the parent's children
	missing string
}

func (u unified) placeOf(c Controller) controllerPlace {
	switch {
	case u.missing != "":
		return controllerPlace{missing: u.missing}
	case !slices.Contains(u.enabled, string(c)):
		return controllerPlace{missing: fmt.Sprintf("the kernel or the group above %s does not offer the %s controller: %s", u.parent, c, delegateHint)}
	}
	return controllerPlace{version: 2, parent: u.parent}
}

// prepareUnified makes the parent group and switches the controllers on, from
// the top of what is ours down to it.
func prepareUnified(cfg Config, mount string) unified {
	if mount == "" {
		return unified{missing: "no control groups are mounted: mount cgroup2 on /sys/fs/cgroup"}
	}
	top := mount
	if cfg.UID != 0 {
		delegated, err := delegatedGroup(cfg.Self)
		if err != nil {
			return unified{missing: fmt.Sprintf("no control group is delegated to this user (%v): %s", err, delegateHint)}
		}
		top = filepath.Join(mount, delegated)
	}
	parent := filepath.Join(top, cfg.Parent)
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // Limits are no secret, and others' tools read them.
		return unified{missing: fmt.Sprintf("%s is not writable (%v): %s", top, err, delegateHint)}
	}
	for dir := top; ; {
		if err := enableControllers(dir); err != nil {
			return unified{missing: fmt.Sprintf("controllers can't be switched on in %s (%v): %s", dir, err, delegateHint)}
		}
		if dir == parent {
			break
		}
		rest, _, _ := strings.Cut(strings.TrimPrefix(parent, dir+"/"), "/")
		dir = filepath.Join(dir, rest)
	}
	return unified{parent: parent, enabled: fields(filepath.Join(parent, "cgroup.subtree_control"))}
}

// enableControllers switches on what the group has to offer of the
// controllers that we use.
func enableControllers(dir string) error {
	on := fields(filepath.Join(dir, "cgroup.subtree_control"))
	offered := fields(filepath.Join(dir, "cgroup.controllers"))
	var want []string
	for _, c := range Controllers() {
		if slices.Contains(offered, string(c)) && !slices.Contains(on, string(c)) {
			want = append(want, "+"+string(c))
		}
	}
	if len(want) == 0 {
		return nil
	}
	err := writeControl(filepath.Join(dir, "cgroup.subtree_control"), strings.Join(want, " "))
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("the group has processes of its own, which version 2 does not allow beside child groups: %w", err)
	}
	return err
}

// delegatedGroup finds the group that systemd made over to the user, which is
// the user@UID.service that we run somewhere below.
func delegatedGroup(self string) (string, error) {
	data, err := os.ReadFile(self)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		parts := strings.Split(own, "/")
		i := slices.IndexFunc(parts, func(p string) bool {
			return strings.HasPrefix(p, "user@") && strings.HasSuffix(p, ".service")
		})
		if i < 0 {
			return "", fmt.Errorf("the process is in %s, not below a user@.service", own)
		}
		// A process may only be moved within what is delegated, so the
		// service's own subtree is the one that works.
		return strings.Join(parts[:i+1], "/"), nil
	}
	return "", errors.New("the process is in no version 2 group")
}
