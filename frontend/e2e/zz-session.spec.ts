import { minute } from "./berth";
import { expect, expectAccessibleInBoth, test } from "./watched";

// The last file: from its first token on, the server wants one of everybody.
test("a token logs in, an ended session comes back to its page, and out again", async ({ watched: page }) => {
  test.setTimeout(5 * minute);
  await page.goto("/settings");
  const tokens = page.getByRole("region", { name: "Tokens" });
  await tokens.getByLabel("Name").fill("person");
  await tokens.getByRole("button", { name: "Make a token" }).click();
  const secret = (await page.getByTestId("secret").innerText()).trim();
  expect(secret).toMatch(/^berth_/);
  await page.getByRole("button", { name: "Close" }).click();

  // The browser that made the first token is logged in with it.
  await expect(page.getByRole("button", { name: "Account of person" })).toBeVisible();
  await page.context().clearCookies();
  await page.reload();
  await expect(page.getByRole("heading", { name: "Log in to Berth" })).toBeVisible();
  await expectAccessibleInBoth(page);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByText("Enter a token.")).toBeVisible();
  await page.getByLabel("Token").fill("berth_wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByText("The token is not valid")).toBeVisible();
  await page.getByLabel("Token").fill(secret);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("heading", { name: "Settings" })).toBeVisible();
  await expectAccessibleInBoth(page);

  await page.goto("/machines");
  await expect(page.getByRole("heading", { name: "Machines" })).toBeVisible();
  await page.context().clearCookies();
  await expect(page.getByText("Your session has ended.")).toBeVisible({ timeout: 2 * minute }); // machines are read each minute
  await expect(page).toHaveURL(/\/machines$/);
  await page.getByLabel("Token").fill(secret);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("heading", { name: "Machines" })).toBeVisible();

  // A log-out in one tab ends the session shown in another.
  const other = await page.context().newPage();
  await other.goto("/sweeps");
  await expect(other.getByRole("table", { name: "Sweeps" })).toBeVisible();
  await page.getByRole("button", { name: "Account of person" }).click();
  await page.getByRole("menuitem", { name: "Log out" }).click();
  await expect(page.getByRole("heading", { name: "Log in to Berth" })).toBeVisible();
  await expect(other.getByRole("heading", { name: "Log in to Berth" })).toBeVisible({ timeout: 90_000 });
  await expect(other.getByRole("table")).toHaveCount(0);
});
