package main

import (
	"context"
	"fmt"
	"io"
	"time"

	tables "fangcheng.example/player/gen/fangcheng/table/v1"
)

// Heartbeats come more often: a stream that says nothing for so long is dead.
const silence = time.Minute

// attend hands over the events of a seat, each once and in order, until the table has closed or handle
// returns an error.
//
// A stream that broke goes on after the last number. One that asks for events which are no longer kept
// begins with a snapshot, which stands for all up to its number; so does one that has met a kind of
// event which this client is too old to know.
func attend(table tables.TableServiceClient, tableID string, handle func(*tables.TableEvent) error) error {
	request := &tables.AttendRequest{TableId: tableID}
	waiting := newPatience()
	for {
		err := stream(table, request, waiting, handle)
		if err == nil && !request.Snapshot {
			return nil
		}
		if err != nil {
			if err := waiting.after(err); err != nil {
				return err
			}
		}
	}
}

// stream opens it once; the request says from where, and is kept up to date.
func stream(
	table tables.TableServiceClient,
	request *tables.AttendRequest,
	waiting *patience,
	handle func(*tables.TableEvent) error,
) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := time.AfterFunc(silence, cancel)
	defer timer.Stop()
	events, err := table.Attend(ctx, request)
	if err != nil {
		return err
	}
	for {
		response, err := events.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		waiting.alive()
		timer.Reset(silence)
		event := response.GetEvent()
		if event == nil { // a heartbeat, or what a seat says
			continue
		}
		last := request.FromNumber
		switch isSnapshot := event.GetSnapshot() != nil; {
		case event.Number < last || event.Number == last && !isSnapshot:
			continue
		case event.Number != last+1 && !isSnapshot:
			return fmt.Errorf("event %d came after %d", event.Number, last)
		}
		request.FromNumber, request.Snapshot = event.Number, event.Kind == nil
		if request.Snapshot {
			return nil
		}
		if err := handle(event); err != nil {
			return err
		}
	}
}
