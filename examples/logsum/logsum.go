// Summarises a web server's log in the common format: logsum [-top N] [-json] [FILE...]
// Reads standard input without names; counts requests by status, path and hour, and bytes sent.
// Workers parse the files at the same time and a channel collects what they found, so it shows
// goroutines in a program that has one thread.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

var entry = regexp.MustCompile(`^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+)[^"]*" (\d{3}) (\d+|-)`)

// Summary is what one or more logs amount to.
type Summary struct {
	Requests  int            `json:"requests"`
	Bytes     int64          `json:"bytes"`
	Malformed int            `json:"malformed"`
	First     time.Time      `json:"first"`
	Last      time.Time      `json:"last"`
	Status    map[string]int `json:"status"`
	Paths     map[string]int `json:"paths"`
	Hosts     map[string]int `json:"hosts"`
	Hours     [24]int        `json:"hours"`
}

func newSummary() *Summary {
	return &Summary{Status: map[string]int{}, Paths: map[string]int{}, Hosts: map[string]int{}}
}

func (s *Summary) addLine(line string) {
	m := entry.FindStringSubmatch(line)
	if m == nil {
		s.Malformed++
		return
	}
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[2])
	if err != nil {
		s.Malformed++
		return
	}
	at = at.UTC()
	s.addTime(at)
	s.Hours[at.Hour()]++
	s.Requests++
	s.Hosts[m[1]]++
	path, _, _ := strings.Cut(m[4], "?")
	s.Paths[path]++
	s.Status[m[5]]++
	if size, err := strconv.ParseInt(m[6], 10, 64); err == nil {
		s.Bytes += size
	}
}

func (s *Summary) addTime(at time.Time) {
	if s.First.IsZero() || at.Before(s.First) {
		s.First = at
	}
	if at.After(s.Last) {
		s.Last = at
	}
}

func (s *Summary) merge(o *Summary) {
	s.Requests += o.Requests
	s.Bytes += o.Bytes
	s.Malformed += o.Malformed
	if o.Requests > 0 {
		s.addTime(o.First)
		s.addTime(o.Last)
	}
	for _, pair := range []struct{ to, from map[string]int }{
		{s.Status, o.Status}, {s.Paths, o.Paths}, {s.Hosts, o.Hosts}} {
		for key, n := range pair.from {
			pair.to[key] += n
		}
	}
	for hour, n := range o.Hours {
		s.Hours[hour] += n
	}
}

func summarise(in io.Reader) (*Summary, error) {
	s := newSummary()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			s.addLine(line)
		}
	}
	return s, lines.Err()
}

type result struct {
	name    string
	summary *Summary
	err     error
}

func summariseFiles(names []string) <-chan result {
	results := make(chan result)
	var working sync.WaitGroup
	for _, name := range names {
		working.Add(1)
		go func(name string) {
			defer working.Done()
			file, err := os.Open(name)
			if err != nil {
				results <- result{name: name, err: err}
				return
			}
			defer file.Close()
			s, err := summarise(file)
			results <- result{name, s, err}
		}(name)
	}
	go func() { working.Wait(); close(results) }()
	return results
}

// most returns the n keys that occur most often, by name among equals: a map has no order.
func most(counts map[string]int, n int) []string {
	keys := make([]string, 0, len(counts))
	for key := range counts {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool {
		if counts[keys[i]] != counts[keys[j]] {
			return counts[keys[i]] > counts[keys[j]]
		}
		return keys[i] < keys[j]
	})
	if len(keys) > n {
		keys = keys[:n]
	}
	return keys
}

func (s *Summary) print(out io.Writer, top int) {
	fmt.Fprintf(out, "%d requests, %d bytes, %d lines not understood\n", s.Requests, s.Bytes, s.Malformed)
	if s.Requests == 0 {
		return
	}
	fmt.Fprintf(out, "from %s to %s (%s)\n", s.First.Format(time.RFC3339), s.Last.Format(time.RFC3339), s.Last.Sub(s.First))
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	for _, part := range []struct {
		title  string
		counts map[string]int
	}{{"status", s.Status}, {"path", s.Paths}, {"host", s.Hosts}} {
		for _, key := range most(part.counts, top) {
			n := part.counts[key]
			fmt.Fprintf(table, "%s\t%s\t%d\t%.1f%%\t\n", part.title, key, n, 100*float64(n)/float64(s.Requests))
		}
	}
	table.Flush()
	highest := 0
	for _, n := range s.Hours {
		highest = max(highest, n)
	}
	for hour, n := range s.Hours {
		if n > 0 {
			fmt.Fprintf(out, "%02d:00 %s %d\n", hour, strings.Repeat("#", (n*40+highest-1)/highest), n)
		}
	}
}

func main() {
	top := flag.Int("top", 5, "how many of each kind")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()

	total := newSummary()
	failed := []string{}
	if flag.NArg() == 0 {
		s, err := summarise(os.Stdin)
		if err != nil {
			failed = append(failed, "standard input")
		}
		total = s
	}
	for r := range summariseFiles(flag.Args()) {
		if r.err != nil {
			failed = append(failed, r.name)
			continue
		}
		total.merge(r.summary)
	}
	if *asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		encoder.Encode(total)
	} else {
		total.print(os.Stdout, *top)
	}
	sort.Strings(failed)
	for _, name := range failed {
		fmt.Fprintf(os.Stderr, "logsum: %s: cannot read\n", name)
	}
	if len(failed) > 0 {
		os.Exit(1)
	}
}
