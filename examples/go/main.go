// A player who queues, plays hands, and leaves: see README.md for what it reads from the environment.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	matchmaking "fangcheng.example/player/gen/fangcheng/matchmaking/v1"
	tables "fangcheng.example/player/gen/fangcheng/table/v1"
)

func main() {
	tableID, err := seated()
	if err == nil {
		err = play(tableID)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, explain(err))
		os.Exit(1)
	}
	fmt.Println("left the table")
}

// seated tells the caller's table: the one where he sits already, or a new one out of the pool's queue.
func seated() (string, error) {
	connection, err := dial("MATCHMAKING", "127.0.0.1:7100")
	if err != nil {
		return "", err
	}
	defer connection.Close()
	queue := matchmaking.NewMatchmakingServiceClient(connection)

	// Whoever was started again goes on where he was.
	var found *matchmaking.GetPlayerStatusResponse
	err = untilKnown(func(ctx context.Context) (err error) {
		found, err = queue.GetPlayerStatus(ctx, &matchmaking.GetPlayerStatusRequest{})
		return err
	})
	if err != nil || found.TableId != "" {
		return found.GetTableId(), err
	}
	ticket := found.Ticket
	if ticket == nil {
		pool := os.Getenv("FANGCHENG_POOL")
		if pool == "" {
			pool = "baishan_kele-practice"
		}
		// One id for all repeats: a lost answer does not queue the player twice.
		id := make([]byte, 16)
		if _, err := rand.Read(id); err != nil {
			return "", err
		}
		request := &matchmaking.JoinQueueRequest{RequestId: fmt.Sprintf("%x", id), PoolId: pool, ClientVersion: 1}
		var joined *matchmaking.JoinQueueResponse
		err = untilKnown(func(ctx context.Context) (err error) {
			joined, err = queue.JoinQueue(ctx, request)
			return err
		})
		if err != nil {
			return "", err
		}
		again := ""
		if joined.Replayed {
			again = " (the first answer was lost)"
		}
		fmt.Printf("queued in %s%s\n", pool, again)
		ticket = joined.Ticket
	}
	return assigned(queue, ticket.TicketId)
}

// assigned waits for a ticket's table. The stream begins with the ticket as it is whenever it is opened.
func assigned(queue matchmaking.MatchmakingServiceClient, ticketID string) (string, error) {
	waiting := newPatience()
	request := &matchmaking.WatchTicketRequest{TicketId: ticketID}
	for {
		ctx, cancel := context.WithCancel(context.Background())
		stream, err := queue.WatchTicket(ctx, request)
		for err == nil {
			var news *matchmaking.WatchTicketResponse
			if news, err = stream.Recv(); err != nil {
				break
			}
			waiting.alive()
			switch ticket := news.Ticket; ticket.State {
			case matchmaking.TicketState_TICKET_STATE_ASSIGNED:
				cancel()
				return ticket.TableId, nil
			case matchmaking.TicketState_TICKET_STATE_FAILED:
				err = errors.New(ticket.Problem.GetMessage())
			case matchmaking.TicketState_TICKET_STATE_LEFT:
				err = errors.New("the ticket has left the queue")
			}
		}
		cancel()
		if err := waiting.after(err); err != nil {
			return "", err
		}
	}
}

// play plays until the table has closed, or the player has left it.
func play(tableID string) error {
	connection, err := dial("TABLE", "127.0.0.1:7101")
	if err != nil {
		return err
	}
	defer connection.Close()
	table := tables.NewTableServiceClient(connection)
	most, _ := strconv.Atoi(os.Getenv("FANGCHENG_HANDS"))
	if most == 0 {
		most = 1
	}

	act := func(decisionID string, action *tables.Action) error {
		request := &tables.ActRequest{TableId: tableID, DecisionId: decisionID, Action: action}
		err := untilKnown(func(ctx context.Context) error {
			_, err := table.Act(ctx, request)
			return err
		})
		// Another's claim came first, or the time was over: the next events tell.
		if err != nil && explain(err).reason != "STALE_DECISION" {
			return err
		}
		return nil
	}

	hands := 0
	err = attend(table, tableID, func(event *tables.TableEvent) error {
		fmt.Println(event.Number, tell(event))
		prompt, back := event.GetPrompt(), event.GetTrusteeChanged().GetDecisionId()
		if found := event.GetSnapshot(); found != nil {
			// A table that was found in the middle tells in its snapshot what is asked.
			prompt, back = found.Prompt, found.BackDecisionId
		}
		if prompt != nil {
			if err := act(prompt.DecisionId, choose(prompt.Actions)); err != nil {
				return err
			}
		}
		// The table has played for this seat while nothing was heard of it: take it back.
		if back != "" {
			if err := act(back, &tables.Action{Kind: "back"}); err != nil {
				return err
			}
		}
		if event.GetHandEnded() != nil {
			if hands++; hands == most {
				leave := &tables.LeaveTableRequest{TableId: tableID, Mode: tables.LeaveMode_LEAVE_MODE_AFTER_HAND}
				return untilKnown(func(ctx context.Context) error {
					_, err := table.LeaveTable(ctx, leave)
					return err
				})
			}
		}
		return nil
	})
	// The table goes on with another player.
	if err != nil && explain(err).reason == "LEFT_TABLE" {
		return nil
	}
	return err
}

// choose takes any win; of claims none; otherwise the last discard that is offered, which declares nothing.
func choose(actions []*tables.Action) *tables.Action {
	chosen := actions[0]
	for _, action := range actions {
		switch {
		case action.Kind == "win":
			return action
		case chosen.Kind == "false_win": // 诈胡: it costs, and leaves the prompt open
			chosen = action
		case action.Kind == "pass", action.Kind == "discard" && action.Declare == "" && chosen.Kind != "pass":
			chosen = action
		}
	}
	return chosen
}

// tell puts an event into a few words; kinds that a real client would draw are named only.
func tell(event *tables.TableEvent) string {
	switch kind := event.Kind.(type) {
	case *tables.TableEvent_Prompt:
		offered := []string{}
		for _, action := range kind.Prompt.Actions {
			offered = append(offered, strings.TrimSpace(action.Kind+" "+tileText(action.Tile)))
		}
		return "asked: " + strings.Join(offered, ", ")
	case *tables.TableEvent_Discarded:
		return fmt.Sprintf("seat %d discards %s", kind.Discarded.Seat, tileText(kind.Discarded.Tile))
	case *tables.TableEvent_HandEnded:
		net := strings.Trim(fmt.Sprint(kind.HandEnded.Net), "[]")
		return fmt.Sprintf("hand %d ended: %s", kind.HandEnded.HandNumber, net)
	case *tables.TableEvent_TableClosed:
		return "the table closed: " + kind.TableClosed.Reason
	default:
		name := strings.TrimPrefix(fmt.Sprintf("%T", kind), "*tablev1.TableEvent_")
		return strings.ToLower(name)
	}
}

// tileText: 11 is 1m (万), 25 5p (饼), 39 9s (条), 41 1z (东), 51 1f; nothing where there is none.
func tileText(tile uint32) string {
	if tile == 0 {
		return ""
	}
	return fmt.Sprintf("%d%c", tile%10, "mpszf"[tile/10-1])
}
