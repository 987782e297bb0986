package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// posture: print the privileges of this process, after trying to gain some.
func posture([]string) error {
	fmt.Println("setresuid:", unix.Setresuid(0, 0, 0))
	fmt.Println("setresgid:", unix.Setresgid(0, 0, 0))
	fmt.Println("setgroups:", unix.Setgroups([]int{0}))
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := [2]unix.CapUserData{{Effective: ^uint32(0), Permitted: ^uint32(0)}, {Effective: ^uint32(0), Permitted: ^uint32(0)}}
	fmt.Println("capset:", unix.Capset(&header, &all[0]))
	fmt.Println("no_new_privs off:", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0))
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	fmt.Printf("%s", status)
	return nil
}

// daemonise ARGS...: run another probe as a daemon does: twice forked, in a
// session of its own. Its output still goes to where ours does.
func daemonise(args []string) error {
	if os.Getenv("DAEMONISED") == "" {
		return child("DAEMONISED=1", append([]string{"daemonise"}, args...), true)
	}
	return child("DAEMONISED=2", args, true)
}

func child(variable string, args []string, wait bool) error {
	cmd := exec.Command("/proc/self/exe", args...) // it ends by itself
	cmd.Env = append(os.Environ(), variable)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	if !wait {
		return nil
	}
	return cmd.Wait()
}

// hold: stay until input ends.
func hold([]string) error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// echo ARGS...: print arguments, each quoted, and chosen environment variables.
func echo(args []string) error {
	for _, a := range args {
		if len(a) > 256 {
			fmt.Println("long", len(a), bytes.Count([]byte(a), []byte(a[:1])))
			continue
		}
		fmt.Printf("%q\n", a)
	}
	for _, name := range []string{"LD_PRELOAD", "BASH_ENV", "PATH"} {
		fmt.Printf("%s=%q\n", name, os.Getenv(name))
	}
	return nil
}

// flood MEGABYTES: output without a newline, invalid UTF-8.
func flood(args []string) error {
	megabytes, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	chunk := bytes.Repeat([]byte{0xff, 0xfe, 'x', 0x80}, 1<<18)
	for range megabytes {
		if _, err := os.Stdout.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}

// stubborn: ignore every signal that can be ignored, in a tree of three
// sessions, for ever.
func stubborn([]string) error {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGTSTP)
	depth := len(os.Getenv("STUBBORN"))
	if depth < 2 {
		if err := child("STUBBORN="+os.Getenv("STUBBORN")+"x", []string{"stubborn"}, false); err != nil {
			return err
		}
	}
	fmt.Println("stubborn", os.Getpid())
	for {
		_ = unix.Pause() // a signal that is not ignored ends the process
	}
}

// zombies COUNT: leave children that nobody waits for.
func zombies(args []string) error {
	count, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for range count {
		cmd := exec.Command("/proc/self/exe", "echo") // it ends by itself
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		err = errors.Join(err, cmd.Start())
	}
	fmt.Println("left", count)
	return err
}
