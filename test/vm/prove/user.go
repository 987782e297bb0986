//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The normal user of the guest's image.
const (
	userName = "worker"
	userID   = "1000"
	// The group of the user's own systemd.
	userGroup = tree + "/user.slice/user-" + userID + ".slice/user@" + userID + ".service"
)

// user: a normal user whose systemd delegates to them has sandboxes with limits, in groups
// of their own. The control is the same user without that.
func user(ctx context.Context) (string, error) {
	home := "HOME=/home/" + userName
	without, err := call(ctx, "runuser", "-u", userName, "--", "env", home, "cofferdam", "doctor")
	if err != nil || !strings.Contains(without.out, "no control group is delegated to this user") {
		return "", errors.Join(fmt.Errorf("INCONCLUSIVE: without systemd doctor says %s %s", without.out, without.err), err)
	}
	if _, err := must(ctx, "loginctl", "enable-linger", userName); err != nil {
		return "", err
	}
	if _, err := must(ctx, "systemctl", "start", "user@"+userID+".service"); err != nil {
		return "", err
	}
	as := func(argv ...string) (string, error) {
		return must(ctx, append([]string{"runuser", "-u", userName, "--", "env", home, "XDG_RUNTIME_DIR=/run/user/" + userID}, argv...)...)
	}
	// It returns when the daemon has told the user's systemd that it is ready.
	if _, err := as("systemd-run", "--user", "--quiet", "--property=Type=notify", "--property=Delegate=yes", "--unit=daemon", "cofferdam", "serve"); err != nil {
		return "", err
	}
	policy, err := policyFile(limited)
	if err != nil {
		return "", err
	}
	id, err := as("cofferdam", "create", "--template", "host", "--policy", policy)
	if err != nil {
		return "", err
	}
	seen, err := box{id: id}.delegated()
	if err != nil {
		return "", err
	}
	limits, err := processesBelow(userGroup)
	if err != nil {
		return "", err
	}
	if said, err := as("cofferdam", "exec", id, "--", "sh", "-c", "id -u && echo out"); err != nil || !strings.HasSuffix(said, "out") {
		return "", errors.Join(fmt.Errorf("inside is %q", said), err)
	}
	if _, err := as("cofferdam", "stop", "--force"); err != nil {
		return "", err
	}
	if left := groups(id); len(left) > 0 {
		return "", fmt.Errorf("it left %v", left)
	}
	return seen + "; " + limits, nil
}

// delegated wants the limits in a group below the user's own.
func (b box) delegated() (string, error) {
	seen, err := b.limits("gvisor")
	if err != nil {
		return "", err
	}
	if group, _, err := members(b.id); err != nil || !strings.HasPrefix(group, userGroup+"/") {
		return "", errors.Join(fmt.Errorf("its group is %s", group), err)
	}
	return seen, nil
}
