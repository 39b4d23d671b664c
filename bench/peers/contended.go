// SPDX-License-Identifier: Apache-2.0

// Contenders for one lock of go-zookeeper, as in `latchkey-bench
// lock-contended`, whose line of figures it prints:
//
//	contended HOST:PORT N each=TURNS hold=MICROSECONDS mode=sessions|shared
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/samuel/go-zookeeper/zk"
)

type silent struct{}

func (silent) Printf(string, ...interface{}) {}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "contended:", err)
		os.Exit(1)
	}
}

func connect(hosts string) *zk.Conn {
	conn, events, err := zk.Connect([]string{hosts}, 30*time.Second,
		zk.WithLogger(silent{}), zk.WithLogInfo(false))
	fail(err)
	for event := range events {
		if event.State == zk.StateHasSession {
			break
		}
	}
	go func() {
		for range events {
		}
	}()
	return conn
}

// What all contenders share. Only the holder changes it; the mutex orders these
// changes for Go, too.
type queue struct {
	sync.Mutex
	released time.Time
	handoffs []float64 // in microseconds
}

func (q *queue) granted() {
	q.Lock()
	defer q.Unlock()
	if !q.released.IsZero() {
		q.handoffs = append(q.handoffs,
			float64(time.Since(q.released).Nanoseconds())/1e3)
	}
}

func (q *queue) leaves() {
	q.Lock()
	defer q.Unlock()
	q.released = time.Now()
}

func (q *queue) quantile(share float64) float64 {
	return q.handoffs[int(share*float64(len(q.handoffs)-1)+0.5)]
}

func contend(q *queue, lock *zk.Lock, turns int, hold time.Duration) {
	for ; turns > 0; turns-- {
		fail(lock.Lock())
		q.granted()
		if hold > 0 {
			time.Sleep(hold)
		}
		q.leaves()
		fail(lock.Unlock())
	}
}

func option(key string) string {
	for _, word := range os.Args[3:] {
		if strings.HasPrefix(word, key+"=") {
			return word[len(key)+1:]
		}
	}
	return ""
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	fail(err)
	return value
}

func processorTime() (user, system float64) {
	var usage syscall.Rusage
	fail(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()) / 1e9, float64(usage.Stime.Nano()) / 1e9
}

func main() {
	hosts, contenders := os.Args[1], number(os.Args[2])
	turns, hold := number(option("each")), number(option("hold"))
	locks := make([]*zk.Lock, contenders)
	var conn *zk.Conn
	for i := range locks {
		if conn == nil || option("mode") == "sessions" {
			conn = connect(hosts)
		}
		locks[i] = zk.NewLock(conn, "/peers-go", zk.WorldACL(zk.PermAll))
	}
	q := &queue{}
	var done sync.WaitGroup
	user, system := processorTime()
	began := time.Now()
	for _, lock := range locks {
		done.Add(1)
		go func(lock *zk.Lock) {
			defer done.Done()
			contend(q, lock, turns, time.Duration(hold)*time.Microsecond)
		}(lock)
	}
	done.Wait()
	seconds := time.Since(began).Seconds()
	userEnd, systemEnd := processorTime()
	sort.Float64s(q.handoffs)
	fmt.Printf("lock-contended %d %.6f %.6f %.6f 0 mode=%s "+
		"handoff_p50_us=%.1f handoff_p99_us=%.1f\n", contenders*turns, seconds,
		userEnd-user, systemEnd-system, option("mode"), q.quantile(0.5),
		q.quantile(0.99))
}
