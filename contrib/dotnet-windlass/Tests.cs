using System;
using System.Diagnostics;
using System.IO;
using System.Net.Sockets;
using System.Text.RegularExpressions;
using System.Threading;
using Windlass.Testing;

/// <summary>The tests of WindlassCluster, without a framework for tests. `hold` as the argument starts a cluster and waits.</summary>
internal static class Tests
{
    private static int Main(string[] arguments)
    {
        if (arguments.Length > 0)
        {
            Console.WriteLine(new WindlassCluster().Kubeconfig);
            Thread.Sleep(600000);
            return 0;
        }
        ClustersRunUntilTheyAreDisposed();
        AnErrorQuotesTheProgram();
        AProgramThatCannotRunIsNamed();
        AMissingProgramIsNamed();
        AClusterEndsWhenItsParentIsKilled();
        Console.WriteLine("WindlassCluster: 5 passed, 0 failed");
        return 0;
    }

    private static void ClustersRunUntilTheyAreDisposed()
    {
        var watch = Stopwatch.StartNew();
        var first = new WindlassCluster();
        Console.WriteLine("ready after {0} ms", watch.ElapsedMilliseconds);
        var port = Port(first.Kubeconfig);
        using (var second = WindlassCluster.Start("--bare"))
        {
            Check(Port(second.Kubeconfig) != port, "each cluster has a port of its own");
            Check(Accepts(port), "the first cluster accepts connections");
            Check(Accepts(Port(second.Kubeconfig)), "the second cluster accepts connections");
        }
        first.Dispose();
        Check(!Accepts(port), "a cluster ends with Dispose");
        Check(!File.Exists(first.Kubeconfig), "the kubeconfig is deleted");
    }

    private static void AnErrorQuotesTheProgram()
    {
        var message = Failure(() => WindlassCluster.Start("--bogus"));
        Check(message.Contains("code 2") && message.Contains("--bogus"), message);
    }

    private static void AProgramThatCannotRunIsNamed()
    {
        var message = With("WINDLASS", "/absent/windlass", () => Failure(() => new WindlassCluster()));
        Check(message.Contains("cannot run /absent/windlass"), message);
    }

    private static void AMissingProgramIsNamed()
    {
        var message = With("WINDLASS", null, () => With("PATH", "/absent", () => Failure(() => new WindlassCluster())));
        Check(message.Contains("not on the PATH") && message.Contains("WINDLASS"), message);
    }

    /// <summary>The parent is this program again, in the same runtime: mono or dotnet.</summary>
    private static void AClusterEndsWhenItsParentIsKilled()
    {
        var runtime = Process.GetCurrentProcess().MainModule.FileName;
        var program = typeof(Tests).Assembly.Location;
        var start = new ProcessStartInfo(runtime, program + " hold") { UseShellExecute = false, RedirectStandardOutput = true };
        using (var parent = Process.Start(start))
        {
            var port = Port(parent.StandardOutput.ReadLine());
            Check(Accepts(port), "the cluster accepts connections");
            parent.Kill();
            parent.WaitForExit();
            var watch = Stopwatch.StartNew();
            while (Accepts(port))
            {
                Check(watch.Elapsed < TimeSpan.FromSeconds(30), "a cluster ends with its parent");
                Thread.Sleep(20);
            }
        }
    }

    private static int Port(string kubeconfig)
    {
        var server = Regex.Match(File.ReadAllText(kubeconfig), "server: https://127.0.0.1:([0-9]+)");
        return int.Parse(server.Groups[1].Value);
    }

    private static bool Accepts(int port)
    {
        using (var client = new TcpClient())
        {
            try
            {
                client.Connect("127.0.0.1", port);
                return true;
            }
            catch (SocketException)
            {
                return false;
            }
        }
    }

    private static string Failure(Func<WindlassCluster> start)
    {
        try
        {
            start().Dispose();
        }
        catch (WindlassException error)
        {
            return error.Message;
        }
        throw new Exception("failed: a cluster started");
    }

    private static T With<T>(string variable, string value, Func<T> run)
    {
        var before = Environment.GetEnvironmentVariable(variable);
        Environment.SetEnvironmentVariable(variable, value);
        try
        {
            return run();
        }
        finally
        {
            Environment.SetEnvironmentVariable(variable, before);
        }
    }

    private static void Check(bool condition, string what)
    {
        if (!condition)
        {
            throw new Exception("failed: " + what);
        }
    }
}
