// Command example charges once for an order, however often it is run.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	paidonce "paidonce/sdk/go"
)

func main() {
	ctx := context.Background()
	c, err := paidonce.New(paidonce.Config{BaseURL: os.Getenv("PAIDONCE_URL"), APIKey: os.Getenv("PAIDONCE_API_KEY"), Store: paidonce.FileStore(".payments")})
	if err != nil {
		log.Fatal(err)
	}
	r, err := c.CreateCharge(ctx, "order-1001", paidonce.ChargeParams{Amount: 2000, Currency: "usd", Source: paidonce.Ptr("tok_visa")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Data.ID, r.Data.Status)
}
